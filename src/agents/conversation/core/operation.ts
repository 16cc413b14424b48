/**
 * Operations: the tool calls of a turn. Each operation and attempt is an effect of its own. Pure.
 *
 * OP-1  An operation gets one result. Only the attempt that the state calls for can give it; late results and results of other attempts are
 *       ignored.
 * OP-2  `unpackOperation(packOperation(operation))` equals the operation.
 * OP-3  A result by name never settles a `pure` operation. Pure calls may run before their reply is committed, and after a crash another
 *       reply may have another call with the same operation id.
 * OP-4  A failure by name does not settle an operation that runs again after a crash: it may be the earlier run's, such as a timeout.
 * OP-5  An operation without a result when its turn ends gets the error `CANCELLED`. The outcome of a `once` call that has started is then
 *       unknown, and the error says so.
 * OP-6  If a `once` call that was cancelled succeeds later all the same, the next cycle sees one note with its result. Repeated results add
 *       no note. The same applies to an abandoned call with a handle, while the handle is valid.
 * HELD-1  The time limit of a call of an agent or a run does not count while that work waits for a person. The answer restarts it.
 */
import type { Allowance, Amounts } from "../../../model/spending.ts";
import type { Taint } from "../../../model/taint.ts";
import type { Verdict } from "../../../policy/gate.ts";
import type { CallAsk } from "../../../protocol/agent-call.ts";
import type { ApprovalOutcome } from "../../../protocol/approval.ts";
import type { Budget } from "../../../protocol/budget.ts";
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { AgentMode, ToolEffect } from "../../../protocol/definitions.ts";
import type { Elicited } from "../../../protocol/elicitation.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { TaskView } from "../../../protocol/task-summary.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { Jurisdiction } from "../../../shared/location.ts";
import { CALL_GRACE_MS } from "./conversation-limits.ts";

/** Answers the call: the deployed code of a tool, in the Executor; the client; another agent; or the run of a workflow. */
export type OperationTarget = "code" | "client" | "agent" | "workflow";

/** The newest message about a wait for a person, below a call. */
export interface OperationHold {
  readonly seq: number;
  readonly isHeld: boolean;
  /** The time of the message, in milliseconds since the epoch. */
  readonly at: number;
}

export interface CalledAgent {
  readonly id: string;
  readonly mode: AgentMode;
  /** The template of the sub-agent; absent for an agent without a template. */
  readonly template?: string;
  /** The agent works in the caller's workspace. */
  readonly workspace?: "shared";
  /** The jurisdiction of the caller's conversation and of the conversation that the call opens; absent without a jurisdiction. */
  readonly jurisdiction?: Jurisdiction;
  /** The share of the caller's budget for the call; absent without a budget. */
  readonly budget?: Budget;
  /** The calls that may be open below it at a time; absent before it begins. */
  readonly calls?: number;
  /** The use of the call, over all attempts; absent before the first attempt ended. */
  readonly spent?: Amounts;
  /** The tool calls of the called agent, at all levels, that wait for a person; absent if empty. */
  readonly asks?: readonly CallAsk[];
  /** The newest requests with an answer that arrived before them. Such late requests are not shown. Absent if empty. */
  readonly answered?: readonly string[];
  /** When the last of them was answered; absent before. */
  readonly answeredAt?: number;
}

/** `sync`: the model is called again once there is a result. `async`: the turn continues, and a later cycle gets the result. */
export type OperationMode = "sync" | "async";

/**
 * `awaiting_approval`: no attempt runs before a person approves it. `pending`: the attempt runs, or is about to.
 * `dispatched`: the agent's conversation or the run was asked. `interrupted`: the actor died under an attempt that must not run again,
 * and its executor may still deliver the result. `deferred`: the tool has ended, and the result comes by a handle. `completed` and `failed`:
 * there is a result. `cancelled`: the turn ended before the result came, and the stored result has this fact.
 */
export type OperationStatus =
  | "awaiting_approval"
  | "pending"
  | "dispatched"
  | "interrupted"
  | "deferred"
  | "completed"
  | "failed"
  | "cancelled";

/** The reservation of an attempt that may call models (BUDGET-8). Both members are absent without model calls or without a budget. */
export interface TaskReservation {
  /** `due`: the budgets must have room for it. `leasing`: it waits for the agent's answer. In both states the attempt does not run. */
  readonly reserving?: "due" | "leasing";
  /** The maximum use of the attempt, for the limited amounts. */
  readonly reserved?: Allowance;
}

export interface PolicyNote extends Verdict {
  /** The untrusted origins in the request that led to the call; absent if there are none. */
  readonly taint?: Taint;
}

/** One tool call that the model requested. Times are milliseconds since the epoch. */
export interface Operation extends TaskReservation {
  readonly item: number;
  /** Index of the reply that requested the call. */
  readonly reply: number;
  /** The provider's id of the call. */
  readonly toolCallId: string;
  readonly name: string;
  /** The pinned tool; `null` if the agent has no tool of this name. */
  readonly tool: { library: string; id: string; version: number } | null;
  readonly effect: ToolEffect;
  readonly target: OperationTarget;
  /** Present if the target is an agent. */
  readonly agent?: CalledAgent;
  /** An agent of another server answers. `following`: its task may have begun, and further attempts only ask for the result. */
  readonly remote?: "sending" | "following";
  readonly mode: OperationMode;
  readonly status: OperationStatus;
  /** The decision about the call; absent if no rule decided. */
  readonly policy?: PolicyNote;
  /** The outcome of the request for approval; absent without a request and while it is open. */
  readonly approval?: Approval;
  /** The newest question of the server that answers the call, with the values of the answer. Absent once there is a result. */
  readonly elicited?: Elicited & { readonly round: number; readonly values?: JsonObject };
  /** From 1. A run that a crash repeats is the same attempt. */
  readonly attempt: number;
  /** Earliest start of the attempt; absent = at once. */
  readonly notBefore?: number;
  /** When the operation fails unless it has a result; absent = never, and once there is a result. */
  readonly deadline?: number;
  /** Absent before the agent or the run has waited for a person. The deadline does not count during the wait (HELD-1). */
  readonly hold?: OperationHold;
  /** Milliseconds. For a client's tool, counted from the reply that requested the call. */
  readonly timeoutMs: number;
  readonly input: JsonObject;
  /** The model's arguments, if they were not a JSON object. */
  readonly invalidArguments?: string;
  /** The record of the last attempt, for a task of steps. */
  readonly task?: TaskView;
  /** Absent before the operation is completed or failed. */
  readonly result?: ToolResult;
  /** The taint of the result of a call that another turn has taken over. */
  readonly resultTaint?: Taint;
  readonly completedAt?: number;
  /** When its tool ended without a result: it comes by a handle. */
  readonly deferredAt?: number;
  /** For an `async` operation: the number of replies before the cycle that got its result. */
  readonly delivered?: number;
}

export interface Approval {
  readonly outcome: ApprovalOutcome;
  /** The person who answered; absent without an answer. */
  readonly by?: Caller;
  readonly reason?: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The members of an operation that most operations have alike. */
type Lifecycle = "target" | "mode" | "status" | "attempt";

/** An operation without the members that have their usual value. */
export type StoredOperation = Omit<Operation, Lifecycle> & Partial<Pick<Operation, Lifecycle>>;

export function isOpen({ result }: Pick<Operation, "result">): boolean {
  return result === undefined;
}

/** Reports whether another actor answers the call by envelope: an agent in a conversation of its own, or a run. */
export function isSent({ target, agent }: Pick<Operation, "target" | "agent">): boolean {
  return target === "workflow" || agent?.mode === "delegate";
}

/** Reports whether the operation waits for a person (APPROVE-1). */
export function awaitsApproval({ status }: Pick<Operation, "status">): boolean {
  return status === "awaiting_approval";
}

/** Reports whether the operation, or work below it, waits for a person: for an approval, an answer, or the result of a client. */
export function waitsForPerson(operation: Operation): boolean {
  if (!isOpen(operation)) return false;
  const { target, agent, hold } = operation;
  return (
    awaitsApproval(operation) || agent?.asks !== undefined || hold?.isHeld === true || target === "client"
  );
}

/** Reports whether the operation has a result that its turn's next cycle gets. */
export function isDue({ mode, result, delivered }: Operation): boolean {
  return mode === "async" && result !== undefined && delivered === undefined;
}

/** The beginning of the message of a call that may have taken effect. */
export const OUTCOME_UNKNOWN = "Outcome unknown";

/** Reports whether the operation ended without its tool's word: it was stopped, its time was over, or its run was lost. */
export function isGivenUp({ status, result }: Pick<Operation, "status" | "result">): boolean {
  if (status === "cancelled") return true;
  const { code, message = "" } = result?.error ?? {};
  return code === "TIMEOUT" || message.startsWith(OUTCOME_UNKNOWN);
}

/** Reports whether a result by name may settle an operation; `recoveries` counts the crashes under its turn. */
export function takesByName(
  { effect, status, remote }: Operation,
  { success }: Pick<ToolResult, "success">,
  recoveries: number,
): boolean {
  if (effect === "pure") return false;
  const mayRepeat = effect === "idempotent" || remote === "following";
  const runsAgain = status === "pending" && mayRepeat && recoveries > 0;
  return success || !runsAgain;
}

/** Returns the operation with its result, and without what it no longer waits for. */
export function settled(operation: Operation, result: ToolResult, now: number): Operation {
  const {
    notBefore: _notBefore,
    deadline: _deadline,
    elicited: _elicited,
    hold,
    ...rest
  } = withoutAsks(reservedAs(operation, {}));
  const ended =
    hold === undefined ? {} : { hold: { ...hold, isHeld: false, at: hold.isHeld ? now : hold.at } };
  return { ...rest, ...ended, status: statusOf(result), result, completedAt: now };
}

/** Returns an open operation that waits for a result by a handle. */
export function deferred(operation: Operation, deadline: number, deferredAt: number): Operation {
  const { notBefore: _, ...rest } = operation;
  return { ...rest, status: "deferred", deadline, deferredAt };
}

/** Returns a call with a request of its agent for approval. The answer restarts the call's time limit. */
export function withAsk(operation: Operation, ask: CallAsk): Operation {
  const { agent, deadline } = operation;
  if (agent === undefined) return operation;
  const latest = Math.max(deadline ?? 0, callDeadline(operation, ask.expiresAt));
  return { ...operation, deadline: latest, agent: { ...agent, asks: [...(agent.asks ?? []), ask] } };
}

/** Returns an open operation after the call of its agent or the start of its run. The time limit of a run begins now. */
export function dispatched(
  { notBefore: _, ...operation }: Operation,
  { calls = 0, budget }: Pick<CalledAgent, "calls" | "budget">,
  now: number,
): Operation {
  const { agent } = operation;
  if (agent === undefined) return { ...operation, status: "dispatched", deadline: now + operation.timeoutMs };
  const { budget: _before, ...called } = agent;
  return { ...operation, status: "dispatched", agent: { ...called, calls, ...defined({ budget }) } };
}

/** Returns an operation that waited for a person, with the answer. The time of an approved one begins now. */
export function answered(operation: Operation, approval: Approval, values?: JsonObject): Operation {
  if (approval.outcome !== "approved") return { ...operation, approval };
  const { deadline: _, ...rest } = operation;
  const { at } = approval;
  const isElsewhere = operation.target === "agent" || operation.remote !== undefined;
  const deadline = isElsewhere ? callDeadline(operation, at) : undefined;
  const { elicited } = operation;
  const given = elicited && { elicited: { ...elicited, values: values ?? {} } };
  return { ...rest, ...given, status: "pending", approval, notBefore: at, ...defined({ deadline }) };
}

/** Returns the time until which the caller of an agent waits, if the call begins now. */
export function callDeadline({ timeoutMs }: Pick<Operation, "timeoutMs">, now: number): number {
  return now + timeoutMs + CALL_GRACE_MS;
}

/** Returns the deadline of an open operation: infinity if it has no deadline, and while it waits for a person (HELD-1). */
export function dueAt({ deadline, hold }: Pick<Operation, "deadline" | "hold">): number {
  return hold?.isHeld === true ? Number.POSITIVE_INFINITY : (deadline ?? Number.POSITIVE_INFINITY);
}

/** Returns an open call with a message about a wait for a person. The end of the wait restarts the time limit of the call (HELD-1). */
export function withHold(
  operation: Operation,
  { seq, isHeld }: Omit<OperationHold, "at">,
  now: number,
): Operation {
  const held = { ...operation, hold: { seq, isHeld, at: now } };
  if (isHeld) return held;
  return { ...held, deadline: Math.max(operation.deadline ?? 0, callDeadline(operation, now)) };
}

export function repeated({ hold: _hold, ...operation }: Operation, notBefore: number): Operation {
  const { deadline, ...rest } = withoutAsks(reservedAs(operation, {}));
  return {
    ...rest,
    // The time limit of a run begins with its start.
    ...(deadline !== undefined && operation.target !== "workflow" && { deadline }),
    status: "pending",
    attempt: operation.attempt + 1,
    notBefore,
  };
}

/** Returns an open operation whose work continues elsewhere, with the attempt that asks for its result (A2ATASK-1). */
export function continued(operation: Operation, notBefore: number): Operation {
  return { ...repeated(operation, notBefore), remote: "following" };
}

/** Returns an open operation that waits for the answer of a person to a question of its server (ELICIT-1). */
export function asking(operation: Operation, elicited: Elicited, deadline: number): Operation {
  const { approval: _, notBefore: _next, ...rest } = repeated(operation, 0);
  const round = (operation.elicited?.round ?? 0) + 1;
  return { ...rest, status: "awaiting_approval", elicited: { ...elicited, round }, deadline };
}

/** Reports whether a crash under an operation leaves its outcome unknown (RECOVER-2). */
export function isOnce({ effect, remote }: Pick<Operation, "effect" | "remote">): boolean {
  return effect === "once" && remote !== "following";
}

/** Returns an operation without requests for approval, after its attempt ended. */
function withoutAsks(operation: Operation): Operation {
  if (operation.agent?.asks === undefined && operation.agent?.answered === undefined) return operation;
  const { asks: _asks, answered: _answered, ...agent } = operation.agent;
  return { ...operation, agent };
}

/** Reports whether the code of an open operation runs, or may have run. */
export function isRunning({ target, status, reserving, notBefore = 0 }: Operation, now: number): boolean {
  if (target !== "code" || reserving !== undefined) return false;
  return status === "interrupted" || (status === "pending" && notBefore <= now);
}

export function reservedAs<Run extends TaskReservation>(
  { reserving: _reserving, reserved: _reserved, ...run }: Run,
  reservation: TaskReservation,
): Omit<Run, keyof TaskReservation> & TaskReservation {
  return { ...run, ...reservation };
}

/** Returns an open operation of an ending turn as cancelled (OP-5). */
export function cancelled(operation: Operation, now: number): Operation {
  const { name, toolCallId, effect, status, target, reserving, notBefore = now } = operation;
  const isHeld = awaitsApproval(operation) || reserving !== undefined;
  const isRun = target === "code" ? !isHeld && notBefore <= now : status === "dispatched";
  const hasStarted = status === "interrupted" || isRun;
  const message =
    effect === "once" && hasStarted
      ? `Outcome unknown: "${name}" was stopped while it ran, and it may have taken effect.`
      : `"${name}" was stopped before it had a result.`;
  const error = { code: "CANCELLED" as const, message, retriable: false };
  const result: ToolResult = { tool_call_id: toolCallId, success: false, error };
  return { ...settled(operation, result, now), status: "cancelled" };
}

export function statusOf(result: ToolResult | undefined): OperationStatus {
  if (result === undefined) return "pending";
  return result.success ? "completed" : "failed";
}

/** Leaves out the members that `unpackOperation` restores. */
export function packOperation(operation: Operation, replyAt: number | undefined): StoredOperation {
  const { target, mode, status, attempt, deadline, ...rest } = operation;
  return {
    ...rest,
    ...defined({
      target: target === "code" ? undefined : target,
      mode: mode === "sync" ? undefined : mode,
      status: status === statusOf(operation.result) ? undefined : status,
      attempt: attempt === 1 ? undefined : attempt,
      deadline: deadline === usualDeadline(operation, replyAt) ? undefined : deadline,
    }),
  };
}

/** Restores a stored operation (OP-2). `replyAt` is the time of its reply. */
export function unpackOperation(stored: StoredOperation, replyAt: number | undefined): Operation {
  const operation: Operation = {
    target: "code",
    mode: "sync",
    status: statusOf(stored.result),
    attempt: 1,
    ...stored,
  };
  return { ...operation, ...defined({ deadline: operation.deadline ?? usualDeadline(operation, replyAt) }) };
}

/** Returns the deadline of an open operation of a client: its time limit behind the reply. */
function usualDeadline(operation: Operation, replyAt: number | undefined): number | undefined {
  if (operation.target !== "client" || !isOpen(operation) || replyAt === undefined) return undefined;
  return replyAt + operation.timeoutMs;
}
