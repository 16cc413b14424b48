/** Checks of the tools that a conversation runs itself. */
import { isDeepStrictEqual } from "node:util";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import { isCareful } from "./approvals.ts";
import { checkToolAttempts, failedAttempts } from "./check-tool-attempts.ts";
import { callOf } from "./client-tool.ts";
import { firedIn, type Scope, takenIn } from "./scope.ts";
import { EFFECTS } from "./tools.ts";

export function checkTools(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const runs = history.toolRuns.filter((run) => run.conversation === conversation);
  for (const [call, own] of Map.groupBy(runs, (run) => run.call)) {
    const operations = new Set(own.map(({ operationId }) => operationId));
    if (operations.size > 1) fail("tool runs", `${call} ran as ${[...operations].join(" and ")}.`);
    const effect = EFFECTS[own[0]?.tool ?? "look_up"];
    // The results of an uncommitted reply are lost with it. Only pure tools run before the commit.
    const uncommitted = effect === "pure" ? firedIn(scope, ({ kind }) => kind === "error") : 0;
    const repeated = failedAttempts(own[0]?.operationId, scope).length;
    const most = effect === "once" ? 1 : Math.max(1, outcome.lives) + uncommitted + repeated;
    if (own.length > most)
      fail("tool runs", `${call} (${effect}) ran ${own.length} times in ${outcome.lives} lives.`);
  }
  const taken = takenIn(outcome);
  for (const turn of outcome.turns) checkResults(turn, taken, scope);
  checkToolAttempts(scope);
}

function checkResults(
  turn: TurnView,
  taken: ReadonlySet<string>,
  { history, outcome, conversation, fail }: Scope,
): void {
  for (const { toolCall, toolResult } of turn.moves) {
    if (toolCall === undefined || toolCall.client || taken.has(toolCall.operationId)) continue;
    const { operationId, name } = toolCall;
    const reports = history.reported.get(operationId) ?? [];
    if (toolResult === undefined) {
      if (turn.status === "completed") fail("results", `${operationId} has no result.`);
      continue;
    }
    if (toolResult.success) {
      const runs = history.toolRuns.filter((run) => run.operationId === operationId);
      if (!runs.some(({ answer }) => isDeepStrictEqual(answer, toolResult.result))) {
        fail(
          "results",
          `The transcript has a wrong answer of ${operationId}: ${JSON.stringify(toolResult.result)}.`,
        );
      }
      const key = name === "note" ? callOf(toolCall.input) : undefined;
      if (key !== undefined && !isDeepStrictEqual(outcome.toolState[key], { call: key })) {
        fail("tool state", `${key} was noted and is ${JSON.stringify(outcome.toolState[key])}.`);
      }
      continue;
    }
    const { code, message } = toolResult.error ?? { code: "", message: "" };
    const reported = reports.some(({ error }) => error?.code === code && error.message === message);
    const refused = reports.length === 0 && (code === "NOT_FOUND" || code === "INVALID_INPUT");
    const lost = /^Outcome unknown|was lost\.$/.test(message) && history.fired.length > 0;
    // The turn ended before there was a result.
    const cancelled = code === "CANCELLED" && turn.status === "failed";
    const budget = history.plan.conversations[conversation]?.budget;
    // A pure tool may have run before a commit that was lost.
    const mayHaveRun = reports.length === 0 || EFFECTS[name as keyof typeof EFFECTS] === "pure";
    const unpaid = mayHaveRun && code === "BUDGET_EXCEEDED" && budget?.toolCalls !== undefined;
    const unapproved = code === "APPROVAL_DENIED" && isCareful(name) && reports.length === 0;
    if (!reported && !refused && !lost && !cancelled && !unpaid && !unapproved)
      fail("results", `The transcript has a wrong failure of ${operationId}: ${code} ${message}`);
  }
}
