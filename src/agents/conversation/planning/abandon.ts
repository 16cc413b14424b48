/** A turn that cannot go on, for a reason that trying again would not change, fails. */
import type { AgentDecision } from "../decisions.ts";
import type { Abandon } from "../signals.ts";
import type { ConversationState } from "../state.ts";

export function planAbandon(state: ConversationState, { turn, error }: Abandon): AgentDecision[] {
  return state.active.has(turn) ? [{ type: "FAIL_TURN", turn, error }] : [];
}
