/** What a model's reply, or its failure, means for the turn. */
import type { ModelError, RequestedToolCall } from "../../../adapters/types.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { AgentDecision } from "../decisions.ts";
import { MAX_BACKOFF_MS, MAX_CALLS_PER_REPLY, MODEL_ATTEMPTS, MODEL_BACKOFF_MS, NOTICES } from "../limits.ts";
import type { EffectSignal } from "../signals.ts";
import type { ConversationState, Operation, Turn } from "../state.ts";
import { planNext } from "./next.ts";
import type { PlanInput } from "./plan.ts";
import { checkToolCall } from "./tool-call.ts";

type Completed = Extract<EffectSignal, { type: "conversation.llm.completed" }>;
type Failed = Extract<EffectSignal, { type: "conversation.llm.failed" }>;

export function planModelReply(
  state: ConversationState,
  signal: Completed,
  input: PlanInput,
): AgentDecision[] {
  const turn = callingTurn(state, signal);
  if (turn?.call == null) return [];
  const { reply } = signal;
  if (reply.toolCalls.length === 0 || turn.call.final) {
    const notice = turn.call.final ? NOTICES.movesExhausted : NOTICES.emptyReply;
    const text = reply.text.trim() === "" ? notice : reply.text;
    return [
      { type: "APPEND_MESSAGE", turn: turn.n, reply: { ...reply, text, toolCalls: [] } },
      { type: "COMPLETE_TURN", turn: turn.n },
    ];
  }
  const calls = reply.toolCalls.slice(0, MAX_CALLS_PER_REPLY);
  const decisions: AgentDecision[] = [
    { type: "RECORD_MOVE", turn: turn.n, reply: { ...reply, toolCalls: calls } },
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

export function planModelFailure(
  state: ConversationState,
  signal: Failed,
  { now }: PlanInput,
): AgentDecision[] {
  const turn = callingTurn(state, signal);
  if (turn?.call == null) return [];
  const error = describe(signal.error);
  const { attempt } = turn.call;
  if (!signal.error.retriable || attempt >= MODEL_ATTEMPTS) {
    return [{ type: "FAIL_TURN", turn: turn.n, error }];
  }
  const backoff = MODEL_BACKOFF_MS[attempt - 1] ?? MAX_BACKOFF_MS;
  const delay = Math.max(backoff, Math.min(signal.error.retryAfterMs ?? 0, MAX_BACKOFF_MS));
  return [{ type: "RETRY_LLM", turn: turn.n, error, notBefore: now + delay, reset: signal.streamed }];
}

/** The turn whose current call this signal answers. */
function callingTurn(state: ConversationState, signal: Completed | Failed): Turn | undefined {
  const turn = state.active.get(signal.turn);
  const matches = turn?.call?.item === signal.item && turn.call.attempt === signal.attempt;
  return matches ? turn : undefined;
}

/** Results are matched to calls by id, so an id may stand only once in a turn. */
function unusedId(call: RequestedToolCall, used: Set<string>): string {
  let id = call.id;
  for (let suffix = 2; used.has(id); suffix++) id = `${call.id}_${suffix}`;
  used.add(id);
  return id;
}

function describe(error: ModelError): ErrorData {
  return {
    code: "MODEL_FAILED",
    message: `The model call failed (${error.category}): ${error.message}`,
    retriable: error.retriable,
  };
}
