/**
 * What a model's reply means for the turn.
 *
 * NATIVE-2  A reply's own parts are kept only as long as they say what is kept of it: not with a notice in the place of
 *           its text, not where calls were cut off, and not beyond `MAX_NATIVE_LENGTH`.
 */
import type { ModelReply, RequestedToolCall } from "../../../../model/reply.ts";
import type { AgentDecision } from "../decisions.ts";
import { MAX_CALLS_PER_REPLY, MAX_NATIVE_LENGTH, NOTICES } from "../limits.ts";
import type { EffectSignal } from "../signals.ts";
import type { ConversationState, Operation } from "../state.ts";
import { callingTurn } from "./calling-turn.ts";
import { planNext } from "./next.ts";
import { planOutput } from "./output.ts";
import type { PlanInput } from "./plan-input.ts";
import { checkToolCall } from "./tool-call.ts";

type Completed = Extract<EffectSignal, { type: "conversation.llm.completed" }>;

export function planModelReply(
  state: ConversationState,
  signal: Completed,
  input: PlanInput,
): AgentDecision[] {
  const turn = callingTurn(state, signal);
  if (turn?.call == null) return [];
  const { reply, facts } = signal;
  const { n } = turn;
  const record: AgentDecision = { type: "RECORD_ATTEMPT", turn: n, facts, category: "none", isLast: true };
  if (reply.toolCalls.length === 0 || turn.call.final) {
    const withheld = planOutput(turn, reply);
    if (withheld !== null) return [record, ...withheld];
    const notice = turn.call.final ? NOTICES.movesExhausted : NOTICES.emptyReply;
    const text = reply.text.trim() === "" ? notice : reply.text;
    return [
      record,
      { type: "APPEND_MESSAGE", turn: n, reply: kept(reply, { text, toolCalls: [] }) },
      { type: "COMPLETE_TURN", turn: n },
    ];
  }
  const calls = reply.toolCalls.slice(0, MAX_CALLS_PER_REPLY);
  const decisions: AgentDecision[] = [
    record,
    { type: "RECORD_MOVE", turn: n, reply: kept(reply, { text: reply.text, toolCalls: calls }) },
  ];
  const used = new Set(turn.operations.map((operation) => operation.toolCallId));
  const pending: Pick<Operation, "client">[] = [];
  for (const call of calls) {
    const toolCallId = unusedId(call, used);
    const operation = checkToolCall(state.record, turn, { ...call, id: toolCallId }, input);
    if (operation.result === undefined) pending.push(operation);
    decisions.push({ type: "DISPATCH_TASK", turn: turn.n, operation });
  }
  return [...decisions, ...planNext(state, turn.n, pending, turn.replies.length + 1)];
}

/** What is kept of a reply (NATIVE-2). */
function kept(reply: ModelReply, parts: Pick<ModelReply, "text" | "toolCalls">): ModelReply {
  const { native, ...rest } = reply;
  const isWhole = parts.text === reply.text && parts.toolCalls.length === reply.toolCalls.length;
  const isKept = native !== undefined && isWhole && JSON.stringify(native).length <= MAX_NATIVE_LENGTH;
  return { ...rest, ...parts, ...(isKept ? { native } : {}) };
}

/** Results are matched to calls by id, so an id may stand only once in a turn. */
function unusedId(call: RequestedToolCall, used: Set<string>): string {
  let id = call.id;
  for (let suffix = 2; used.has(id); suffix++) id = `${call.id}_${suffix}`;
  used.add(id);
  return id;
}
