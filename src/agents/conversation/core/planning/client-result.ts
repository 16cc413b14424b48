/**
 * What a client reports of a tool that it runs, and what becomes of a call that it leaves unanswered.
 *
 * CLIENTTOOL-1  A call of a client's tool gets one result: the first that comes before its time is up, or that there was
 *               none. The same one again changes nothing; any other is refused.
 * CLIENTTOOL-2  A client's result is kept as it was given, or refused.
 */

import type { ToolResult } from "../../../../protocol/executor-api.ts";
import type { ToolOutcome } from "../../../../protocol/requests.ts";
import { DramatisError } from "../../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../../shared/json.ts";
import type { AgentDecision } from "../decisions.ts";
import type { ClientResult } from "../signals.ts";
import {
  type ConversationState,
  deadlineOf,
  type Operation,
  pendingOperations,
  type Turn,
} from "../state.ts";
import { planNext } from "./next.ts";
import type { PlanInput } from "./plan-input.ts";
import { failure } from "./tool-call.ts";
import { hasRoom } from "./tool-result.ts";

/** Throws `CONFLICT` where the operation takes no result any more, `TOO_LARGE` where its turn holds too much. */
export function planClientResult(
  state: ConversationState,
  { turn: n, item, outcome }: ClientResult,
): AgentDecision[] {
  const turn = state.active.get(n);
  const operation = turn?.operations.find((candidate) => candidate.item === item);
  if (turn === undefined || operation === undefined) throw refused("Its turn is over.");
  if (isRepeated(operation, outcome)) return [];
  const result = toolResult(operation, outcome);
  if (!hasRoom(state, turn, result)) {
    throw new DramatisError(
      "TOO_LARGE",
      "The results of this turn are too large together; give a smaller one.",
    );
  }
  return resume(state, turn, [{ item, result }]);
}

/**
 * Whether an operation has this result already. Throws `CONFLICT` if it has another one, or is not the client's to
 * answer.
 */
export function isRepeated(operation: Operation, outcome: ToolOutcome): boolean {
  if (!operation.client) throw refused("This tool is not run by the client.");
  const { result } = operation;
  if (result === undefined) return false;
  // SAFETY: a tool's result is JSON.
  if (
    canonicalJson(result as unknown as Json) ===
    canonicalJson(toolResult(operation, outcome) as unknown as Json)
  )
    return true;
  throw refused(result.error?.code === "TIMEOUT" ? "It came too late." : "The operation has another result.");
}

/** Gives up what a client has left unanswered for too long. */
export function planExpiry(state: ConversationState, { now }: Pick<PlanInput, "now">): AgentDecision[] {
  return [...state.active.values()].flatMap((turn) => {
    const late = pendingOperations(turn).filter(
      (operation) => operation.client && deadlineOf(turn, operation) <= now,
    );
    const results = late.map(({ item, toolCallId, name, timeoutMs }) => {
      const message = `The client gave no result of "${name}" within ${timeoutMs} ms.`;
      return { item, result: failure(toolCallId, "TIMEOUT", message, true) };
    });
    return results.length === 0 ? [] : resume(state, turn, results);
  });
}

/** Goes on with these results; a turn that waited for a client before does not say so again. */
function resume(
  state: ConversationState,
  turn: Turn,
  results: readonly { item: number; result: ToolResult }[],
): AgentDecision[] {
  const left = pendingOperations(turn).filter(({ item }) => !results.some((given) => given.item === item));
  return [
    ...results.map(({ item, result }) => ({ type: "RESUME_FROM_TOOL" as const, turn: turn.n, item, result })),
    ...(left.length === 0 ? planNext(state, turn.n, left, turn.replies.length) : []),
  ];
}

function toolResult({ toolCallId }: Operation, { result, error }: ToolOutcome): ToolResult {
  if (error === undefined) return { tool_call_id: toolCallId, success: true, result: result ?? null };
  const { code = "EXECUTION_FAILED", message, retriable = false } = error;
  return failure(toolCallId, code, message, retriable);
}

function refused(why: string): DramatisError {
  return new DramatisError("CONFLICT", `The result was not taken: ${why}`);
}
