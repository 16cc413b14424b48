/** The estimate of a model call before it is made. */
import { contextTokens } from "../../../library/definitions/version-chain.ts";
import { MAX_KNOWLEDGE_TOKENS } from "../../../protocol/artifacts.ts";
import { requestTokens } from "../core/planning/context.ts";
import { plannedRequest, type RequestSources, requestProfile } from "../core/planning/request.ts";
import { type ConversationState, chainOf } from "../core/state.ts";
import type { CallingTurn } from "../core/turn.ts";
import { knowledgeOf, recallOf } from "./recall.ts";

/** Estimates the tokens of a turn's next request. If its history cannot be read now, it returns the maximum. */
export function nextRequestTokens(
  { record }: Pick<ConversationState, "record">,
  turn: CallingTurn,
  sources: RequestSources,
): number {
  try {
    // Later notes have at most these tokens.
    const recallTokens = recallOf(record, turn)?.tokens ?? 0;
    const knowledgeTokens = knowledgeOf(record, turn) === undefined ? 0 : MAX_KNOWLEDGE_TOKENS;
    return recallTokens + knowledgeTokens + requestTokens(plannedRequest(record, turn, sources));
  } catch (error) {
    console.error(error);
    return contextTokens(chainOf(record, turn.agentId), requestProfile(record, turn));
  }
}
