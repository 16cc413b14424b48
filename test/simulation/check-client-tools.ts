/** Checks of the tools that clients run. */
import { isDeepStrictEqual } from "node:util";
import type { MoveView } from "../../src/protocol/move-schemas.ts";
import type { ToolOutcome } from "../../src/protocol/requests.ts";
import type { Submission } from "./history.ts";
import { type Scope, takenIn } from "./scope.ts";

export function checkClientTools(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const given = history.submissions.filter((submission) => submission.conversation === conversation);
  const byOperation = Map.groupBy(given, ({ operationId }) => operationId);
  const taken = takenIn(outcome);
  for (const turn of outcome.turns) {
    for (const move of turn.moves) {
      const { toolCall, toolResult } = move;
      if (toolCall?.client !== true || taken.has(toolCall.operationId)) continue;
      const { operationId } = toolCall;
      const submissions = byOperation.get(operationId) ?? [];
      byOperation.delete(operationId);
      if (toolResult === undefined && turn.status === "completed")
        fail("client results", `${operationId} has no result.`);
      checkAnswers(submissions, toolResult, scope);
      if (toolResult !== undefined)
        checkResult(operationId, toolResult, move, submissions, turn.status === "failed", scope);
    }
  }
  for (const operationId of byOperation.keys()) fail("client results", `${operationId} is not recorded.`);
}

type Recorded = NonNullable<MoveView["toolResult"]>;

function checkResult(
  operationId: string,
  recorded: Recorded,
  move: MoveView,
  submissions: readonly Submission[],
  isFailed: boolean,
  scope: Scope,
): void {
  if (submissions.some(({ outcome }) => isRecorded(recorded, outcome))) return;
  const { code, message } = recorded.error ?? {};
  if (code === "TIMEOUT" && mayBeLate(move, submissions, scope)) return;
  // The turn ended before there was a result.
  if (code === "CANCELLED" && isFailed) return;
  scope.fail("client results", `${operationId} has a result that no client sent: ${code} ${message}`);
}

/** A time longer than any user's absence and shorter than a client tool's timeout, in milliseconds. */
const PROMPT_MS = 25_000;

/** Reports whether a call may time out: unless a connected client sent its result at once without a fault. */
function mayBeLate({ createdAt }: MoveView, submissions: readonly Submission[], { history }: Scope): boolean {
  if (history.fired.length > 0) return true;
  return !submissions.some(({ conversation, client, at }) => {
    const { leaves } = history.plan.conversations[conversation]?.clients[client] ?? {};
    return leaves === undefined && at - Date.parse(createdAt) < PROMPT_MS;
  });
}

/** An accepted result must be recorded, and a rejected one must not, unless its turn was over. */
function checkAnswers(
  submissions: readonly Submission[],
  recorded: Recorded | undefined,
  { fail }: Scope,
): void {
  for (const { operationId, outcome, answer } of submissions) {
    const isTaken = recorded !== undefined && isRecorded(recorded, outcome);
    if (answer === "taken" && !isTaken)
      fail("client results", `${operationId} was taken as ${JSON.stringify(outcome)}, and is not.`);
    if (answer !== undefined && answer !== "taken" && answer !== "CONFLICT")
      fail("client results", `${operationId} was refused: ${answer}.`);
    if (answer === "CONFLICT" && isTaken)
      fail("client results", `${operationId} was refused and is recorded: ${JSON.stringify(outcome)}.`);
  }
}

function isRecorded({ success, result, error }: Recorded, outcome: ToolOutcome): boolean {
  return outcome.error === undefined
    ? success && isDeepStrictEqual(result, outcome.result)
    : !success && error?.code === "EXECUTION_FAILED" && error.message === outcome.error.message;
}
