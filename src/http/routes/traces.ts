/**
 * `/api/conversations/:id/turns/:turnId/trace`: the spans of a turn, with those of every conversation below it.
 *
 * TRACES-1  One request returns the trace over all actors that the turn reached: those that its calls opened, and those below them.
 * TRACES-2  A trace is bounded. What is left out, and a conversation that fails or does not answer in time, makes it `partial`; the rest is
 *           returned.
 */
import type { Clock } from "../../ports/clock.ts";
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { TracePart, TraceView } from "../../protocol/trace.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import type { HttpRoutes } from "../base/context.ts";
import { pathParams } from "../base/query.ts";
import { json } from "../base/respond.ts";
import { type ApiOperation, ok } from "../openapi/operation.ts";
import { trace } from "../openapi/trace-views.ts";
import { CONVERSATION, conversationOf, findConversation } from "./conversations.ts";
import { turnParams } from "./turns.ts";

const TRACE = `${CONVERSATION}/turns/:turnId/trace` as const;

/** Conversations of one trace. Each costs a request to its actor. */
export const MAX_TRACE_CONVERSATIONS = 40;
/** Milliseconds in which a conversation must give its part. */
export const TRACE_PART_MS = 5_000;

export const traceOperations: readonly ApiOperation[] = [
  {
    id: "getTrace",
    method: "get",
    path: TRACE,
    tag: "turns",
    summary: "Read the trace of a turn",
    description:
      "The spans of the turn, of the turns that agents started after it, and of the conversations that its calls of agents opened, as OpenTelemetry gets them. Work that goes on has no span yet. Needs no exporter.",
    params: turnParams,
    answers: ok("The trace.", trace),
    errors: ["NOT_FOUND"],
  },
];

export function traceRoutes(app: HttpRoutes): void {
  app.get(TRACE, async (context) => {
    const { turnId } = pathParams(turnParams, context.req);
    const { principal, clock } = context.var;
    const conversation = await conversationOf(context);
    const first = unwrap(await conversation.traceTurn(principal, turnId));
    const below = async (id: string) => {
      const conversation = await findConversation(context.var, id);
      return unwrap(await conversation.traceTurn(principal));
    };
    return json(await gatherTrace(clock, first, below));
  });
}

/** Adds the parts of the conversations below to the first part, level by level. */
export async function gatherTrace(
  clock: Pick<Clock, "timer">,
  first: TracePart,
  read: (conversationId: string) => Promise<TracePart>,
): Promise<TraceView> {
  const parts = [first];
  let room = MAX_TRACE_CONVERSATIONS - 1;
  let partial = false;
  for (let level = first.opened; level.length > 0; ) {
    partial ||= level.length > room;
    const found = await Promise.all(level.slice(0, room).map(partOf));
    room -= found.length;
    level = found.flatMap((part) => part?.opened ?? []);
    parts.push(...found.filter((part) => part !== undefined));
  }
  const spans = parts.flatMap((part) => part.spans);
  return {
    traceId: first.traceId,
    spans: spans.toSorted((a, b) => compare(a.startedAt, b.startedAt) || compare(b.endedAt, a.endedAt)),
    partial: partial || parts.some((part) => part.partial),
  };

  async function partOf(id: string): Promise<TracePart | undefined> {
    try {
      const reason = unanswered(`The conversation "${id}"`, TRACE_PART_MS);
      return await withDeadline(clock, TRACE_PART_MS, () => read(id), { reason });
    } catch (error) {
      // A call that failed before it reached its agent has opened nothing.
      if (error instanceof DramatisError && error.code === "NOT_FOUND") return undefined;
      console.error(`The trace of ${id} could not be read.`, error);
      partial = true;
      return undefined;
    }
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
