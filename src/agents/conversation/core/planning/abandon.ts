/** A turn that cannot go on, for a reason that trying again would not change, fails. */
import type { AgentDecision } from "../decisions.ts";
import type { Abandon } from "../signals.ts";
import type { ConversationState } from "../state.ts";

export function planAbandon(state: ConversationState, { turn, error, facts }: Abandon): AgentDecision[] {
  if (!state.active.has(turn)) return [];
  const fail: AgentDecision = { type: "FAIL_TURN", turn, error };
  if (facts === undefined) return [fail];
  return [{ type: "RECORD_ATTEMPT", turn, facts, category: "unknown", isLast: true }, fail];
}
