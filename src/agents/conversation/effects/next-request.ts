/** The estimate of a model call before it is made. */
import { contextTokens, profileAt } from "../../../library/definitions/version-chain.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { baseContext, requestTokens, sentMoves } from "../core/planning/context.ts";
import { type ConversationState, chainOf } from "../core/state.ts";
import type { CallingTurn, Turn } from "../core/turn.ts";
import { recallOf } from "./recall.ts";

/** The parts of a request. Each read may fail. */
export interface RequestSources {
  history(): ContextMessage[];
  /** The finished turns of other agents that the cycle shows. */
  shownTurns(): Turn[];
}

/** Estimates the tokens of a turn's next request. If its history cannot be read now, it returns the maximum. */
export function nextRequestTokens(
  { record }: Pick<ConversationState, "record">,
  turn: CallingTurn,
  { history, shownTurns }: RequestSources,
): number {
  const chain = chainOf(record, turn.agentId);
  const profile = profileAt(chain, turn.call.profile ?? 0) ?? chain.modelProfile.definition;
  try {
    const { request: assembled } = turn;
    if (assembled !== undefined) {
      const empty = baseContext(record, [], turn);
      return requestTokens({ base: empty, assembled, moves: sentMoves(chain, profile, turn, []) });
    }
    const base = baseContext(record, history(), turn, shownTurns());
    // A later recall has at most these tokens.
    const recallTokens = recallOf(record, turn)?.tokens ?? 0;
    return recallTokens + requestTokens({ base, moves: sentMoves(chain, profile, turn, base.messages) });
  } catch (error) {
    console.error(error);
    return contextTokens(chain, profile);
  }
}
