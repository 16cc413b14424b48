/** The forks of a plan. Each has the number of a conversation: the planned conversations come first. Pure. */
import type { ConversationPlan, ForkPlan, Plan } from "./plan.ts";

export interface PlannedFork {
  /** The number of the fork's conversation. */
  number: number;
  /** The number of the forked conversation. */
  of: number;
  client: number;
  fork: ForkPlan;
}

export function plannedForks({ conversations }: Pick<Plan, "conversations">): PlannedFork[] {
  const forks = conversations.flatMap(({ clients }, of) =>
    clients.flatMap(({ forks: own = [] }, client) => own.map((fork) => ({ of, client, fork }))),
  );
  return forks.map((fork, index) => ({ ...fork, number: conversations.length + index }));
}

/** Returns the plan of a conversation. A fork has the plan of its source. */
export function planOf(plan: Plan, conversation: number): ConversationPlan | undefined {
  const { of = conversation } = plannedForks(plan).find(({ number }) => number === conversation) ?? {};
  return plan.conversations[of];
}
