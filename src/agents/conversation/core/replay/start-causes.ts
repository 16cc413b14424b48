/** The beginning of a turn, from its stored request. Pure. */
import { parseItemId } from "../../../../protocol/ids.ts";
import { defined } from "../../../../shared/defined.ts";
import type { Replacement } from "../replacement.ts";
import { CALL_TURN } from "../state.ts";
import type { TurnRequest } from "../turn.ts";
import type { Cause, Scene } from "./scene.ts";

/** The entries at the beginning of a cycle. */
const BEGINS_CYCLE = /^(?:message|context_assembly)\.started$/;

/** Returns the replacement of an earlier turn by the turn, as a member; `{}` if the turn replaces no turn. */
function replacementIn({ turn, rows }: Scene["recording"]): { replacement?: Replacement } {
  const { regenerates, edits, taken = 0, replies, operations } = turn;
  const id = regenerates ?? edits;
  if (id === undefined) return {};
  const first = rows.flatMap(({ entries }) => entries).find(({ type }) => BEGINS_CYCLE.test(type));
  const moves = {
    replies: replies.slice(0, taken),
    operations: operations.filter(({ reply }) => reply < taken),
    items: first?.item ?? 1,
  };
  const kind = regenerates === undefined ? ("edits" as const) : ("regenerates" as const);
  const n = parseItemId(id)?.n ?? 0;
  return { replacement: { ...{ kind, id, n, sessions: {}, notice: "", notices: {} }, taken: moves } };
}

/** Returns the message that began the turn. A turn that an agent or a run began is given as its decision. */
export function started({ recording, rest }: Scene): Cause[] {
  const { turn, record } = recording;
  const { n, stem, agentId, caller, clientId: id, correlationId, input: content, replied } = turn;
  const { replyTo, to, output, tools, toolChoice, maxOutputTokens, singleCalls, foreground } = turn;
  const { budget, traceparent, inputTaint, exchange, invited } = turn;
  const isOfCall = record.call !== undefined && n === CALL_TURN;
  if (caller.type === "user" || isOfCall) {
    const request = {
      content,
      ...defined({ replyToMessageId: replyTo, output, tools, toolChoice, maxOutputTokens }),
    };
    const data = {
      ...{ ...request, to: agentId, ...defined({ singleCalls, foreground, budget, traceparent }) },
      ...(inputTaint?.includes("import") ? { untrusted: true as const } : {}),
    };
    const message = {
      type: "conversation.user.message",
      caller,
      data,
      ...defined({ id, correlationId, replied }),
      ...replacementIn(recording),
    };
    // SAFETY: the members of the turn are those of its message.
    return [{ signal: message as Extract<Cause, { signal: unknown }>["signal"] }];
  }
  const request: TurnRequest = {
    ...{ stem, agentId, caller, input: content },
    ...defined({ clientId: id, correlationId, traceparent, inputTaint, exchange, invited, budget }),
    ...defined({ to, replyTo, replied, output, tools, toolChoice, maxOutputTokens, singleCalls, foreground }),
  };
  const isQueued = rest.some(({ type }) => type === "turn.queued");
  return [
    {
      decide: () => [
        { type: "START_TURN", turn: n, ...request, ...(isQueued ? {} : { begins: "at once" as const }) },
        ...(isQueued ? [{ type: "QUEUE_TURN" as const, turn: n }] : []),
      ],
    },
  ];
}
