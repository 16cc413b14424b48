/**
 * `/api/conversations/:id/turns/:turnId/trace` and `/api/runs/:id/trace`: the spans of a turn or a run, with the spans of every conversation and
 * run below it.
 *
 * TRACES-1  One request returns the trace over all actors that the turn or the run reached: the actors that its calls opened, and all actors below
 *           them.
 * TRACES-2  A trace is bounded. It is `partial` if spans are left out, or if an actor fails or does not answer in time. An actor that the work
 *           never reached does not make it `partial`.
 * TRACES-3  The trace of a run contains the turns of the agents that its nodes invited.
 * TRACES-4  Spans are ordered by their start. Of spans that start in the same millisecond, a parent precedes its children.
 */
import type { Clock } from "../../ports/clock.ts";
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import {
  type InvitedTurns,
  type SpanView,
  type TracePart,
  type TraceView,
  traceSchema,
} from "../../protocol/trace.ts";
import { hasCode, unwrap } from "../../shared/errors.ts";
import { RUN_ID } from "../../shared/identifiers.ts";
import type { RequestVariables } from "../base/context.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, findConversation } from "./conversations.ts";
import { RUN, runOf, runParams } from "./runs.ts";
import { turnParams } from "./turns.ts";

const TRACE = `${CONVERSATION}/turns/:turnId/trace` as const;
const RUN_TRACE = `${RUN}/trace` as const;

/** Conversations and runs of one trace. Each costs a request to its actor. */
export const MAX_TRACE_CONVERSATIONS = 40;
/** Time limit of each part, in milliseconds. */
export const TRACE_PART_MS = 5_000;

export const traceRoutes: readonly Route[] = [
  route({
    id: "getTrace",
    method: "get",
    path: TRACE,
    tag: "turns",
    summary: "Read the trace of a turn",
    description:
      "The spans of the turn, of the turns that agents started after it, and of the conversations and runs that its calls opened, as OpenTelemetry gets them. Work that continues is `open`. Needs no exporter.",
    params: turnParams,
    answers: ok("The trace.", traceSchema),
    handle: async ({ params: { id, turnId } }, ports) => {
      const conversation = await findConversation(ports, id);
      const first = unwrap(await conversation.traceTurn(ports.principal, turnId));
      // The first part has the turns that its runs invited.
      return json(await gatherTrace(ports.clock, first, (below) => partBelow(ports, below), id));
    },
  }),
  route({
    id: "getRunTrace",
    method: "get",
    path: RUN_TRACE,
    tag: "runs",
    summary: "Read the trace of a run",
    description:
      "The spans of the run, of its nodes, and of the runs and conversations that they opened, as OpenTelemetry gets them. Unfinished nodes have no span yet, and open work of agents is `open`. Needs no exporter.",
    params: runParams,
    answers: ok("The trace.", traceSchema),
    handle: async ({ params }, ports) => {
      const first = unwrap(await (await runOf(ports, params)).traceRun(ports.principal));
      return json(await gatherTrace(ports.clock, first, (below) => partBelow(ports, below)));
    },
  }),
];

/** A conversation or a run by its id, or the turns that a run invited. */
type Below = string | InvitedTurns;

async function partBelow(ports: RequestVariables, below: Below): Promise<TracePart> {
  const { actors, principal } = ports;
  if (typeof below !== "string") {
    const conversation = await findConversation(ports, below.conversationId);
    return unwrap(await conversation.traceTurn(principal, below.turnId, below.runId));
  }
  if (RUN_ID.test(below))
    return unwrap(await (await actors.coordinator(principal.tenant, below)).traceRun(principal));
  return unwrap(await (await findConversation(ports, below)).traceTurn(principal));
}

/**
 * Adds the parts of the conversations and runs below to the first part, level by level. `whole` is the conversation of the first part: it has
 * the turns that its runs invited.
 */
export async function gatherTrace(
  clock: Pick<Clock, "timer">,
  first: TracePart,
  read: (below: Below) => Promise<TracePart>,
  whole?: string,
): Promise<TraceView> {
  const belowOf = ({ opened, invited }: TracePart): Below[] =>
    invited === undefined || invited.conversationId === whole ? opened : [...opened, invited];
  const parts = [first];
  let room = MAX_TRACE_CONVERSATIONS - 1;
  let partial = false;
  for (let level = belowOf(first); level.length > 0; ) {
    partial ||= level.length > room;
    const found = await Promise.all(level.slice(0, room).map(partOf));
    room -= found.length;
    level = found.flatMap((part) => (part === undefined ? [] : belowOf(part)));
    parts.push(...found.filter((part) => part !== undefined));
  }
  const spans = parts.flatMap((part) => part.spans);
  return {
    traceId: first.traceId,
    spans: ordered(spans),
    partial: partial || parts.some((part) => part.partial),
  };

  async function partOf(below: Below): Promise<TracePart | undefined> {
    const id = typeof below === "string" ? below : below.turnId;
    try {
      const reason = unanswered(`"${id}"`, TRACE_PART_MS);
      return await withDeadline(clock, TRACE_PART_MS, () => read(below), { reason });
    } catch (error) {
      // A call that failed before it reached its agent has opened no conversation.
      const isNotFound = hasCode(error, "NOT_FOUND");
      if (isNotFound && typeof below === "string") return undefined;
      console.error(`The trace of ${id} could not be read.`, error);
      partial = true;
      return undefined;
    }
  }
}

/** Returns the spans by their start, parents first (TRACES-4). */
function ordered(spans: readonly SpanView[]): SpanView[] {
  const parents = new Map(spans.map(({ spanId, parentSpanId }) => [spanId, parentSpanId]));
  const depths = new Map<string | undefined, number>([[undefined, 0]]);
  const depthOf = (spanId: string | undefined): number => {
    const known = depths.get(spanId);
    if (known !== undefined) return known;
    // Ends the search if the spans form a cycle.
    depths.set(spanId, 0);
    const depth = depthOf(parents.get(spanId ?? "")) + 1;
    depths.set(spanId, depth);
    return depth;
  };
  return spans.toSorted((a, b) => compare(a.startedAt, b.startedAt) || depthOf(a.spanId) - depthOf(b.spanId));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
