/** Planning a change of the conversation's own settings. Pure. */

import { checkPrices } from "../../../../library/registry/prices.ts";
import { canonicalJson, type Json } from "../../../../shared/json.ts";
import type { AgentDecision } from "../decisions.ts";
import { checkOpen } from "../life.ts";
import type { Update } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { presentAgents } from "./address.ts";

/** Throws `INVALID_INPUT` for a budget in dollars where a model has no price, `CONVERSATION_CLOSED` after its end. */
export function planUpdate(
  state: ConversationState,
  { order, budget, orchestration, caller: by }: Update,
): AgentDecision[] {
  checkOpen(state);
  const decisions: AgentDecision[] = [];
  if (orchestration !== undefined && orchestration !== (state.orchestration ?? true))
    decisions.push({ type: "SET_ORCHESTRATION", on: orchestration, by });
  if (order !== undefined && order !== state.order) decisions.push({ type: "SET_ORDER", order, by });
  if (budget !== undefined && textOf(budget) !== textOf(state.budget ?? null)) {
    if (budget !== null) for (const { chain } of presentAgents(state.record)) checkPrices(chain, budget);
    decisions.push({ type: "SET_BUDGET", budget, by });
  }
  return decisions;
}

function textOf(budget: Update["budget"]): string {
  // SAFETY: a budget is JSON.
  return canonicalJson((budget ?? null) as unknown as Json);
}
