/** What must hold of the tools that clients run. */
import { isDeepStrictEqual } from "node:util";
import type { MoveView } from "../../src/agents/conversation/api.ts";
import type { ToolOutcome } from "../../src/client/client-tools.ts";
import { CLIENT_TOOL_TIMEOUT_MS } from "./client-tool.ts";
import type { Submission } from "./history.ts";
import { firedIn, type Scope } from "./scope.ts";

export function checkClientTools(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const given = history.submissions.filter((submission) => submission.conversation === conversation);
  const byOperation = Map.groupBy(given, ({ operationId }) => operationId);
  for (const turn of outcome.turns) {
    for (const { toolCall, toolResult } of turn.moves) {
      if (toolCall?.client !== true) continue;
      const { operationId } = toolCall;
      const submissions = byOperation.get(operationId) ?? [];
      byOperation.delete(operationId);
      if (toolResult === undefined && turn.status === "completed")
        fail("client results", `${operationId} has no result.`);
      checkAnswers(submissions, toolResult, scope);
      if (toolResult !== undefined) checkResult(operationId, toolResult, submissions, scope);
    }
  }
  for (const operationId of byOperation.keys()) fail("client results", `${operationId} is not recorded.`);
}

type Recorded = NonNullable<MoveView["toolResult"]>;

function checkResult(
  operationId: string,
  recorded: Recorded,
  submissions: readonly Submission[],
  scope: Scope,
): void {
  if (submissions.some(({ outcome }) => isRecorded(recorded, outcome))) return;
  const { code, message } = recorded.error ?? {};
  // A clock that is set forward ends the time of every call that waits.
  const isLate =
    scope.history.elapsed >= CLIENT_TOOL_TIMEOUT_MS || firedIn(scope, ({ kind }) => kind === "jump") > 0;
  if (code === "TIMEOUT" && isLate) return;
  scope.fail("client results", `${operationId} has a result that nobody gave: ${code} ${message}`);
}

/** What was taken is recorded, and what was refused is not, unless its turn was over. */
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
