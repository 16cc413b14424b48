/** What a turn does next when a reply or results have come. */
import { maxMovesPerTurn } from "../../../../library/persona.ts";
import type { AgentDecision } from "../decisions.ts";
import type { ConversationState, Operation } from "../state.ts";

/**
 * Asks the model again once every call has its result, after so many `replies`; says so where a client's are the only
 * ones that are missing.
 */
export function planNext(
  state: ConversationState,
  turn: number,
  pending: readonly Pick<Operation, "client">[],
  replies: number,
): AgentDecision[] {
  if (pending.length > 0) {
    return pending.every(({ client }) => client) ? [{ type: "WAIT_FOR_CLIENT", turn }] : [];
  }
  const final = replies >= maxMovesPerTurn(state.record.chain.persona.definition);
  return [{ type: "CALL_LLM", turn, final }];
}
