/**
 * The time of a call of another agent, in the conversation that it opened. Pure.
 *
 * ASK-2  The time of a call does not run while it waits for a person. The answer restarts it.
 */
import { waitsForPerson } from "./operation.ts";
import type { CallOrigin } from "./state.ts";
import type { Turn } from "./turn.ts";

/** Returns when the time of the call that opened a conversation is over; infinity while it waits for a person (ASK-2). */
export function callEnd({ deadline }: Pick<CallOrigin, "deadline">, { operations, createdAt }: Turn): number {
  if (operations.some(waitsForPerson)) return Number.POSITIVE_INFINITY;
  const answers = operations.flatMap(({ approval, agent, hold, target, completedAt }) => [
    approval?.at ?? 0,
    agent?.answeredAt ?? 0,
    hold?.at ?? 0,
    (target === "client" && completedAt) || 0,
  ]);
  const answeredAt = Math.max(0, ...answers);
  return answeredAt === 0 ? deadline : Math.max(deadline, answeredAt + deadline - createdAt);
}
