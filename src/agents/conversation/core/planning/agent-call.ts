/**
 * The ends of calls of other agents, at the caller and in the conversation that a call opened. Pure.
 *
 * DELEGATE-1  An agent that is called gets only the message of the call: no history, no memory and no tools of the caller. It works in a
 *             conversation of its own, for one turn, and only its caller gets the answer.
 * DELEGATE-3  A call has one outcome at its caller: the answer, the error, or a timeout. A transient failure is repeated if the tool says
 *             so. A timeout is not repeated. Later results and results of other attempts change only the ledger.
 * DELEGATE-4  An answer without text is a failure. A failed call brings the text that its agent had written.
 * DELEGATE-5  An agent that is called may decline, with a reason: `AGENT_DECLINED`, which is not repeated.
 * DELEGATE-6  The conversation of a call ends with the turn of the call, in the same commit, or at its timeout.
 */
import { DECLINE } from "../../../../library/tools/agent-tool.ts";
import type { ModelReply } from "../../../../model/reply.ts";
import type { AgentOutcome } from "../../../../protocol/agent-call.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import { isJsonObject } from "../../../../shared/json.ts";
import { callEnd } from "../call-time.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { Operation } from "../operation.ts";
import type { AgentEnded, ReadersChanged } from "../signals.ts";
import { CALL_TURN, type CallOrigin, type ConversationState, chainOf } from "../state.ts";
import type { CallingTurn, Turn } from "../turn.ts";
import { openCalls } from "../turn-operations.ts";
import { failTurn, stopTurn } from "./cancel.ts";
import { ENDED } from "./complete.ts";
import { fittedResult, nextAttemptAt, resume } from "./results.ts";
import { failure } from "./tool-call.ts";

/** Plans after the end of a call. */
export function planAgentEnded(
  state: ConversationState,
  { turn: n, item, attempt, agentId, outcome, spent }: AgentEnded,
  { now }: Pick<PlanInput, "now">,
): AgentDecision[] {
  const charge: AgentDecision = {
    type: "CHARGE_CALL",
    turn: n,
    item,
    agentId,
    spent,
    ...(outcome === undefined ? {} : { failed: "error" in outcome }),
  };
  const turn = state.active.get(n);
  const operation = turn && openCalls(turn).find((call) => call.item === item);
  if (
    outcome === undefined ||
    turn === undefined ||
    operation?.status !== "dispatched" ||
    operation.attempt !== attempt
  )
    return [charge];
  const given = resultOf(operation, outcome);
  const { error } = given;
  const notBefore = error?.retriable
    ? nextAttemptAt(chainOf(state.record, turn.agentId), operation, now)
    : undefined;
  if (error !== undefined && notBefore !== undefined)
    return [charge, { type: "RETRY_TASK", turn: n, item, error, notBefore }];
  return [charge, ...resume(state, turn, [{ item, result: fittedResult(state, turn, given) }])];
}

export function resultOf({ toolCallId }: Operation, outcome: AgentOutcome): ToolResult {
  if (!("error" in outcome))
    return { tool_call_id: toolCallId, success: true, result: outcome.view ?? outcome.text };
  const { error, partial = "" } = outcome;
  const written = partial.trim() === "" ? "" : ` It had written: ${JSON.stringify(partial)}`;
  return failure(toolCallId, error.code, `${error.message}${written}`, error.retriable);
}

/** Returns the result of a call after its timeout. */
export function expiredCall({ toolCallId, agent, timeoutMs }: Operation): ToolResult {
  const message = `The agent "${agent?.id}" did not answer within ${timeoutMs} ms and was stopped. What it did until then may have taken effect.`;
  return failure(toolCallId, "TIMEOUT", message, true);
}

/** Ends the conversation of a call after the turn of the call, with all other turns. Call it after all signals of a commit. */
export function planCallEnd(
  { record, status, active, turns }: ConversationState,
  input: PlanInput,
): AgentDecision[] {
  const { call } = record;
  if (call === undefined || status !== "active" || turns === 0 || active.has(CALL_TURN)) return [];
  const by = callerOf(call);
  return [
    ...[...active.values()].flatMap((turn) => stopTurn(turn, ENDED, { caller: by }, input)),
    { type: "END_CONVERSATION", status: "completed", by },
  ];
}

/** Fails the turn of a call after its timeout. */
export function planCallExpiry({ record, active }: ConversationState, input: PlanInput): AgentDecision[] {
  const { call } = record;
  if (call === undefined) return [];
  const error: ErrorData = { code: "TIMEOUT", message: "The time of the call was over.", retriable: true };
  return [...active.values()]
    .filter((turn) => callEnd(call, turn) <= input.now)
    .map((turn) => failTurn(turn, error, input));
}

/** Returns the agent that called, in its turn, or the run. */
export function callerOf({ caller }: Pick<CallOrigin, "caller">): Caller {
  return "runId" in caller ? { type: "workflow", ...caller } : { type: "agent", ...caller };
}

/** Returns the error of an empty answer if a caller waits for it; otherwise `null` (DELEGATE-4). */
export function emptyAnswer(
  { record }: Pick<ConversationState, "record">,
  { call, invited }: CallingTurn,
  { text }: ModelReply,
): ErrorData | null {
  if ((record.call ?? invited) === undefined || text.trim() !== "") return null;
  const why = call.final ? "used up its steps before reaching an answer" : "ended without an answer";
  return { code: "EXECUTION_FAILED", message: `The agent ${why}.`, retriable: true };
}

/** Returns the call that declines a task; `undefined` without such a call, or if the agent has its own tool of that name. */
export function declineIn(
  { record }: Pick<ConversationState, "record">,
  { agentId }: Pick<Turn, "agentId">,
  { toolCalls }: Pick<ModelReply, "toolCalls">,
): ModelReply["toolCalls"][number] | undefined {
  if (record.call === undefined) return undefined;
  const own = chainOf(record, agentId).tools.find(({ definition }) => definition.name === DECLINE.id);
  return own === undefined || own.library !== undefined
    ? undefined
    : toolCalls.find(({ name }) => name === DECLINE.id);
}

/** Ends the turn of an agent that declines (DELEGATE-5). */
export function planDecline(
  { n }: Pick<Turn, "n">,
  reply: ModelReply,
  call: ModelReply["toolCalls"][number],
): AgentDecision[] {
  const { name, arguments: given } = call;
  const input = isJsonObject(given) ? given : {};
  const { reason } = input;
  const message = typeof reason === "string" && reason.trim() !== "" ? reason : "The agent gave no reason.";
  const { native: _, ...rest } = reply;
  const operation = {
    toolCallId: call.id,
    name,
    tool: { library: "", id: DECLINE.id, version: DECLINE.version },
    effect: "pure",
    target: "code",
    mode: "sync",
    status: "failed",
    attempt: 1,
    timeoutMs: DECLINE.definition.timeoutMs,
    input,
    result: failure(call.id, "AGENT_DECLINED", message),
  } as const;
  return [
    { type: "RECORD_MOVE", turn: n, reply: { ...rest, toolCalls: [call] } },
    { type: "DISPATCH_TASK", turn: n, operation },
    { type: "FAIL_TURN", turn: n, error: { code: "AGENT_DECLINED", message, retriable: false } },
  ];
}

/**
 * Plans after the readers of the caller's conversation have changed. An older list is ignored (DELEGATE-9). A newer list is noted even with
 * equal readers, because lists between the two may still arrive.
 */
export function planReaders(
  { record: { call } }: Pick<ConversationState, "record">,
  { readers, readersSeq }: ReadersChanged,
): AgentDecision[] {
  if (call === undefined || readersSeq <= (call.readersSeq ?? -1)) return [];
  return [{ type: "SET_READERS", readers, readersSeq }];
}
