/**
 * The use of each agent in a conversation, for the budgets of personas. Pure.
 *
 * BUDGET-7  The budget of a persona limits only the use of its own agent in the conversation. The use of other agents counts for the
 *           conversation's own budget only.
 */
import { type Amounts, addAmounts, NOTHING } from "../../../model/spending.ts";
import type { ConversationAgent, ConversationState, Standing } from "./state.ts";

type Spending = Pick<Standing, "spent" | "spentBy">;

/** Returns the use of an agent. An agent without its own count is the only agent so far, or has no budget. */
export function spentByAgent({ spent, spentBy }: Spending, agentId: string): Amounts {
  return ownCount(spentBy, agentId) ?? spent;
}

/** Returns the amounts after an agent has used up more. */
export function withSpending(
  { spent, spentBy }: Spending,
  agentId: string,
  amounts: Partial<Amounts>,
): Spending {
  const own = ownCount(spentBy, agentId);
  return {
    spent: addAmounts(spent, amounts),
    ...(spentBy === undefined
      ? {}
      : { spentBy: own === undefined ? spentBy : { ...spentBy, [agentId]: addAmounts(own, amounts) } }),
  };
}

/** Returns the counts of the agents with a persona budget after another agent joins; `{}` without such budgets. */
export function countsWith(
  { record, spent, spentBy }: Pick<ConversationState, "record"> & Spending,
  newcomer: ConversationAgent,
): Pick<Standing, "spentBy"> {
  const counts = Object.fromEntries([
    ...record.agents
      .filter(isLimited)
      .map(({ id }) => [id, spentByAgent({ spent, ...(spentBy && { spentBy }) }, id)]),
    ...(isLimited(newcomer) ? [[newcomer.id, NOTHING]] : []),
  ]);
  return Object.keys(counts).length === 0 ? {} : { spentBy: counts };
}

function isLimited({ chain }: ConversationAgent): boolean {
  return chain.persona.definition.budget !== undefined;
}

/** Ids may equal names that every object has, such as `constructor`. */
function ownCount(spentBy: Standing["spentBy"], agentId: string): Amounts | undefined {
  return spentBy !== undefined && Object.hasOwn(spentBy, agentId) ? spentBy[agentId] : undefined;
}
