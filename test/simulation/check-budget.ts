/** Checks of budgets: work runs only if the budget has room for it. */
import { planOf } from "./planned-forks.ts";
import type { Scope } from "./scope.ts";

export function checkBudget(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const { budget } = planOf(history.plan, conversation) ?? {};
  const { spent } = outcome.stored;
  const asked = [...history.modelCalls, ...history.sideCalls].filter(
    (call) => call.conversation === conversation,
  ).length;
  if (asked > spent.modelCalls)
    fail("budget", `${asked} requests were made, and the ledger has ${spent.modelCalls}.`);
  const ran = outcome.turns.reduce((sum, turn) => sum + turn.spent.toolCalls, 0);
  if (ran !== spent.toolCalls)
    fail("budget", `The turns ran ${ran} tools, the ledger has ${spent.toolCalls}.`);
  const { modelCalls = Number.POSITIVE_INFINITY, toolCalls = Number.POSITIVE_INFINITY } = budget ?? {};
  if (spent.modelCalls > modelCalls)
    fail("budget", `${spent.modelCalls} model calls were charged, ${modelCalls} are allowed.`);
  if (asked > modelCalls) fail("budget", `${asked} requests were made, ${modelCalls} are allowed.`);
  if (ran > toolCalls) fail("budget", `${ran} tools ran, ${toolCalls} are allowed.`);
  const { inputTokens, outputTokens } = outcome.stored.usage;
  const counted = inputTokens + outputTokens;
  if (spent.tokens < counted)
    fail("budget", `${counted} tokens were counted, the ledger has ${spent.tokens}.`);
}
