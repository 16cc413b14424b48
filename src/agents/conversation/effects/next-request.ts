/** The estimate of a model call before it is made. */
import { contextTokens } from "../../../library/definitions/version-chain.ts";
import { requestTokens } from "../core/planning/context.ts";
import { plannedRequest, type RequestSources, requestProfile } from "../core/planning/request.ts";
import { type ConversationState, chainOf } from "../core/state.ts";
import type { CallingTurn } from "../core/turn.ts";
import { recallOf } from "./recall.ts";

/** Estimates the tokens of a turn's next request. If its history cannot be read now, it returns the maximum. */
export function nextRequestTokens(
  { record }: Pick<ConversationState, "record">,
  turn: CallingTurn,
  sources: RequestSources,
): number {
  try {
    // A later recall has at most these tokens.
    const recallTokens = recallOf(record, turn)?.tokens ?? 0;
    return recallTokens + requestTokens(plannedRequest(record, turn, sources));
  } catch (error) {
    console.error(error);
    return contextTokens(chainOf(record, turn.agentId), requestProfile(record, turn));
  }
}
