/**
 * Planning after a tool's result, from the executor or from a client: record it, and call the model again once every call of the reply has
 * one.
 *
 * CLIENTTOOL-1  A call of a client's tool gets one result: the first that arrives in time, or a timeout. An identical result is a no-op. A
 *               different result is rejected.
 * CLIENTTOOL-2  A client's result is stored unchanged, or rejected.
 * TOOLRETRY-1  After a transient failure, a call of a `pure` or `idempotent` tool is retried with the same operation id, until its attempts
 *              are used up. A `once` tool and a failure that the tool reported are not retried.
 * TOOLRETRY-2  The pause before an attempt is the tool's backoff, doubled with each further attempt up to a minute. The pause of a task may
 *              be constant, or grow by its first length, and has its own limit. It survives a crash and ends with the turn.
 * A2ATASK-1  An attempt of a call of a remote agent may end while the work continues. The next attempt asks for the result, and survives a crash.
 *            From then on a crash or a lost attempt is never the end of the call, also if its tool is `once`. The time limit of the tool ends it.
 * A2ATASK-3  If a crash or a lost attempt leaves it unknown whether the message arrived, the next attempt sends nothing. It asks for the stored
 *            task. Without a task the call fails, and the outcome is unknown. The success of an earlier attempt is still accepted.
 * TOOLRETRY-3  A crash uses up no attempt: it repeats the attempt that it interrupted.
 */
import { excerptOf, viewOfResult } from "../../../../attachments/large-result.ts";
import { maxMovesPerTurn } from "../../../../library/personas/persona.ts";
import { nextAttemptAt as nextAttempt } from "../../../../library/tools/retry.ts";
import type { Amounts } from "../../../../model/spending.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import { MAX_ELICITATIONS } from "../../../../protocol/elicitation.ts";
import { MAX_OUTPUT_BYTES, type ToolResult } from "../../../../protocol/executor-api.ts";
import type { ToolOutcome } from "../../../../protocol/requests.ts";
import type { TaskModelUsage, TaskSummary } from "../../../../protocol/task-summary.ts";
import { defined } from "../../../../shared/defined.ts";
import { conflict, type DramatisError, tooLarge } from "../../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../../shared/json.ts";
import { activeLength, lengthOf, resultsLength } from "../content-size.ts";
import { APPROVAL_TIMEOUT_MS, MAX_ACTIVE_CONTENT, MAX_TURN_RESULTS } from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { asking, awaitsApproval, type Operation } from "../operation.ts";
import type { ClientResult, DeferredResult, ToolCompleted } from "../signals.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { reservedByOperation, spentByTask } from "../task-spending.ts";
import type { Turn } from "../turn.ts";
import { blockingOperations, openOperations } from "../turn-operations.ts";
import { type WaitingOperation, waitForResults } from "../waits.ts";
import { isStuck, type RepeatableCall } from "./repeats.ts";
import { failure } from "./tool-call.ts";

/** The result of one operation of a turn. */
export interface ItemResult {
  item: number;
  result: ToolResult;
  /** The record of a task of steps. */
  task?: TaskSummary;
  /** The call was counted, and did not run. */
  isUnused?: true;
}

/** Ignores a result of another attempt (OP-1). A view replaces a result that would exceed the limits. */
export function planToolResult(
  state: ConversationState,
  {
    turn: n,
    item,
    attempt,
    result,
    transient,
    continuesAt,
    elicited,
    task,
    spent: ofRun,
    lost,
  }: ToolCompleted,
  { now, approvalTimeoutMs = APPROVAL_TIMEOUT_MS }: Pick<PlanInput, "now" | "approvalTimeoutMs">,
): AgentDecision[] {
  const turn = state.active.get(n);
  if (turn === undefined) return [];
  const isExpected = (operation: Operation) =>
    operation.item === item &&
    (operation.target === "code" || (operation.target === "workflow" && operation.status === "dispatched")) &&
    (operation.attempt === attempt || (operation.remote === "following" && result.success)) &&
    operation.status !== "deferred" &&
    !awaitsApproval(operation);
  const operation = openOperations(turn).find(isExpected);
  if (operation === undefined) return [];
  const did = defined({ task });
  const chain = chainOf(state.record, turn.agentId);
  // The use of a lost run is unknown (LEDGER-5).
  const known = ofRun ?? spentByTask(task ?? {});
  const spent = lost === undefined ? known : reservedByOperation(chain, operation);
  const charge = chargeTask(turn, item, spent, lost === undefined ? task?.models : undefined);
  if (elicited !== undefined && (operation.elicited?.round ?? 0) < MAX_ELICITATIONS) {
    const blocking = blockingOperations(turn);
    const deadline = now + approvalTimeoutMs;
    const left = blocking.map((one) => (one.item === item ? asking(one, elicited, deadline) : one));
    const ask = { type: "ASK_PERSON" as const, turn: n, item, elicited, deadline };
    return [...charge, ask, ...announceWait(n, blocking, left)];
  }
  const isFollowing = operation.remote === "following";
  const next = continuesAt ?? (isFollowing && transient ? now + FOLLOW_AGAIN_MS : undefined);
  if (next !== undefined && operation.remote !== undefined)
    return [...charge, { type: "CONTINUE_TASK", turn: n, item, notBefore: next }];
  const notBefore = transient ? nextAttemptAt(chain, operation, now) : undefined;
  if (notBefore !== undefined && result.error !== undefined)
    return [...charge, { type: "RETRY_TASK", turn: n, item, error: result.error, notBefore, ...did }];
  if (lost !== undefined && operation.remote !== undefined)
    return [...charge, { type: "CONTINUE_TASK", turn: n, item, notBefore: now + FOLLOW_AGAIN_MS }];
  const { toolCallId } = operation;
  const given = { ...result, tool_call_id: toolCallId };
  return [...charge, ...resume(state, turn, [{ item, result: fittedResult(state, turn, given), ...did }])];
}

/** Milliseconds before a lost attempt that asked for the result of a remote agent is repeated. */
const FOLLOW_AGAIN_MS = 5_000;

/** Returns a result; a view of it if the turn has no room for it (LARGE-1). */
export function fittedResult(state: ConversationState, turn: Turn, result: ToolResult): ToolResult {
  const excess = result.success ? excessOf(state, turn, result) : null;
  if (excess === null) return result;
  return {
    ...result,
    result: viewOfResult(excerptOf(JSON.stringify(result.result ?? null)), { lost: excess }),
  };
}

/** Bytes that the result of a call may have even in a full turn. A view of a result fits. */
const MIN_INLINE_BYTES = 16 * 1024;

/** Returns the bytes of JSON that each open call of a turn may have as its result (LARGE-1). */
export function inlineBytes(state: ConversationState, turn: Turn): number {
  const open = Math.max(1, openOperations(turn).length);
  const room = Math.min(MAX_TURN_RESULTS - resultsLength(turn), MAX_ACTIVE_CONTENT - activeLength(state));
  return Math.min(MAX_OUTPUT_BYTES, Math.max(MIN_INLINE_BYTES, Math.floor(room / open)));
}

/** Plans after the end of a call in a stopped turn: the journal records the progress of its task (TASKLOG-2). */
export function planStoppedTask({ turn, item, result, task }: Omit<ToolCompleted, "type">): AgentDecision[] {
  if (task === undefined || result.error?.code !== "CANCELLED") return [];
  return [{ type: "NOTE_STOPPED_TASK", turn, item, task }];
}

/** Charges the conversation with the use of a run that ended after its turn (LEDGER-7). */
export function chargeLateRun(
  { n: turn, agentId }: Pick<Turn, "n" | "agentId">,
  item: number,
  spent: Amounts,
): AgentDecision[] {
  if (spent.modelCalls === 0) return [];
  return [{ type: "CHARGE_TASK", turn, item, agentId, spent, isLate: true }];
}

/** Charges the turn with the use of models by a task (LEDGER-5). */
export function chargeTask(
  { n: turn, agentId }: Pick<Turn, "n" | "agentId">,
  item: number,
  spent: Amounts,
  models?: TaskModelUsage,
): AgentDecision[] {
  if (spent.modelCalls === 0) return [];
  return [{ type: "CHARGE_TASK", turn, item, agentId, spent, ...defined({ models }) }];
}

/**
 * Plans a result from outside. `isGiven` reports whether the operation has it already. Throws `CONFLICT` if the operation no longer accepts a
 * result, and `TOO_LARGE` if its turn's results are too large.
 */
export function planGivenResult(
  state: ConversationState,
  { turn: n, item, outcome }: ClientResult | DeferredResult,
  isGiven: (operation: Operation, outcome: ToolOutcome) => boolean,
): AgentDecision[] {
  const turn = state.active.get(n);
  const operation = turn?.operations.find((candidate) => candidate.item === item);
  if (turn === undefined || operation === undefined) throw refused("Its turn is over.");
  if (isGiven(operation, outcome)) return [];
  const result = clientResult(operation, outcome);
  const excess = excessOf(state, turn, result);
  if (excess !== null) throw tooLargeResult(excess);
  return resume(state, turn, [{ item, result }]);
}

/** Reports whether an operation already has this result. Throws `CONFLICT` if it has another result, or is not a client's operation. */
export function isRepeated(operation: Operation, outcome: ToolOutcome): boolean {
  if (operation.target !== "client") throw refused("The client does not run this tool.");
  return hasResult(operation, outcome);
}

/** Reports whether an operation has this result. Throws `CONFLICT` if it has another result. */
export function hasResult(
  operation: Operation,
  outcome: ToolOutcome,
  why = "The operation has another result.",
): boolean {
  const { result } = operation;
  if (result === undefined) return false;
  // SAFETY: a tool's result is JSON.
  const [before, now] = [result, clientResult(operation, outcome)] as unknown as [Json, Json];
  if (canonicalJson(before) === canonicalJson(now)) return true;
  throw refused(result.error?.code === "TIMEOUT" ? "It arrived too late." : why);
}

/**
 * Records results of a turn, then plans its next step. A turn that waited for its client, or for deferred results, waits without
 * a new entry. Results of background operations wait for the next cycle.
 */
export function resume(
  state: ConversationState,
  turn: Turn,
  results: readonly ItemResult[],
): AgentDecision[] {
  const { n, replies } = turn;
  const blocking = blockingOperations(turn);
  const left = blocking.filter(({ item }) => !results.some((given) => given.item === item));
  const operations = turn.operations.map((operation) => {
    const given = results.find(({ item }) => item === operation.item);
    return given === undefined ? operation : { ...operation, result: given.result };
  });
  return [
    ...results.map((given) => ({ type: "RESUME_FROM_TOOL" as const, turn: n, ...given })),
    ...(left.length === 0 && blocking.length > 0
      ? [callModel(state, { ...turn, operations }, replies.length)]
      : announceWait(n, blocking, left)),
  ];
}

/** A turn, with its operations as the planned decisions leave them. */
type ActedTurn = Pick<Turn, "n" | "agentId" | "continuations"> & { operations: readonly RepeatableCall[] };

type Pending = WaitingOperation;

/** Plans the next step after `replies` replies, not counting continuations: call the model, or wait for the operations that are pending. */
export function planNext(
  state: ConversationState,
  turn: ActedTurn,
  pending: readonly Pending[],
  replies: number,
): AgentDecision[] {
  return pending.length === 0 ? [callModel(state, turn, replies)] : announceWait(turn.n, [], pending);
}

function callModel(
  { record }: ConversationState,
  { n: turn, operations, ...rest }: ActedTurn,
  replies: number,
): AgentDecision {
  const final = isLastCall(record, rest, replies) || isStuck(operations, replies);
  return { type: "CALL_LLM", turn, final };
}

/** Announces that a turn waits for its remaining operations, if this wait is new (WAIT-2). */
export function announceWait(
  turn: number,
  before: readonly Pending[],
  left: readonly Pending[],
): AgentDecision[] {
  const wait = waitForResults(left);
  // A turn works while an agent works for it, as it does while a tool runs.
  if (wait === null || wait === "tools" || wait === "agents" || wait === waitForResults(before)) return [];
  switch (wait) {
    case "person":
      return [{ type: "WAIT_FOR_PERSON", turn }];
    case "client":
      return [{ type: "WAIT_FOR_CLIENT", turn }];
    case "handle":
      return [{ type: "MARK_WAITING", turn, isIdle: true }];
    default:
      return wait satisfies never;
  }
}

/** Reports whether the model call after `replies` replies is the last of its turn. */
export function isLastCall(
  record: ConversationState["record"],
  { agentId, continuations = 0 }: Pick<Turn, "agentId" | "continuations">,
  replies: number,
): boolean {
  return replies + continuations >= maxMovesPerTurn(chainOf(record, agentId).persona.definition);
}

/** Names the limit that another result of a turn would exceed; `null` if it fits. */
function excessOf(state: ConversationState, turn: Turn, result: ToolResult): string | null {
  const length = lengthOf(result);
  if (resultsLength(turn) + length > MAX_TURN_RESULTS)
    return `the results of one turn may have ${MAX_TURN_RESULTS} characters together.`;
  if (activeLength(state) + length > MAX_ACTIVE_CONTENT)
    return `the active turns of a conversation may have ${MAX_ACTIVE_CONTENT} characters together.`;
  return null;
}

export function clientResult({ toolCallId }: Operation, { result, error }: ToolOutcome): ToolResult {
  if (error === undefined) return { tool_call_id: toolCallId, success: true, result: result ?? null };
  const { code = "EXECUTION_FAILED", message, retriable } = error;
  return failure(toolCallId, code, message, retriable);
}

export function refused(why: string): DramatisError {
  return conflict(`The result was not accepted: ${why}`);
}

function tooLargeResult(excess: string): DramatisError {
  return tooLarge(`The result is too large: ${excess} Send a smaller one.`);
}

/** Returns the earliest time of an operation's next attempt; `undefined` if the failed one was the last. */
export function nextAttemptAt(
  { tools }: Pick<VersionChain, "tools">,
  { name, effect, attempt }: Pick<Operation, "name" | "effect" | "attempt">,
  now: number,
): number | undefined {
  const retry = tools.find(({ definition }) => definition.name === name)?.definition.retry;
  return nextAttempt(retry, { effect, attempt }, now);
}
