/** Planning of calls that wait for runs of workflows, or for people below them. Pure. */
import type { ToolErrorCode, ToolResult } from "../../../../protocol/executor-api.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { AgentDecision } from "../decisions.ts";
import { type Operation, withHold } from "../operation.ts";
import type { WorkHeld } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { blockingOperations, sentCalls } from "../turn-operations.ts";
import { announceWait } from "./results.ts";
import { failure } from "./tool-call.ts";

/** Plans after a message of an agent or a run about a wait for a person. Ignores an older message. */
export function planHold(
  { active }: Pick<ConversationState, "active">,
  { turn: n, item, attempt, seq, isHeld }: WorkHeld,
): AgentDecision[] {
  const turn = active.get(n);
  const operation = turn && sentCalls(turn).find((call) => call.item === item);
  if (turn === undefined || operation?.status !== "dispatched" || operation.attempt !== attempt) return [];
  if (seq <= (operation.hold?.seq ?? -1)) return [];
  const blocking = blockingOperations(turn);
  const left = blocking.map((one) => (one.item === item ? withHold(one, { seq, isHeld }, 0) : one));
  return [{ type: "NOTE_HOLD", turn: n, item, seq, isHeld }, ...announceWait(n, blocking, left)];
}

/** Returns the result of a call of a workflow that took too long. */
export function expiredRun({ toolCallId, name, timeoutMs }: Operation): ToolResult {
  const message = `The workflow of "${name}" did not end within ${timeoutMs} ms, so its run was cancelled. Its effects until then may have taken place.`;
  return failure(toolCallId, "TIMEOUT", message, true);
}

/** The errors of tools for refusals of a start. */
const CODES: Readonly<Record<string, ToolErrorCode>> = {
  NOT_FOUND: "NOT_FOUND",
  FORBIDDEN: "PERMISSION_DENIED",
  INVALID_INPUT: "INVALID_INPUT",
  BUDGET_EXCEEDED: "BUDGET_EXCEEDED",
};

/** Returns the result of a call that the run's actor refused to start. */
export function refusedRun({ code, message }: Pick<ErrorData, "code" | "message">): ToolResult {
  const known = CODES[code];
  if (known !== undefined) return failure("", known, message);
  return failure("", "EXECUTION_FAILED", `The run of the workflow could not be started: ${message}`, true);
}
