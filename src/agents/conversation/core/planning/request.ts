/** The request of a model call before its provider's form, and the profile that it goes to. Pure. */
import { profileAt } from "../../../../library/definitions/version-chain.ts";
import type { ModelContext } from "../../../../model/context.ts";
import type { ContextMessage } from "../../../../model/messages.ts";
import { requestWithOutputLimit, withOutputLimit } from "../../../../model/output-limit.ts";
import type { ModelProfile } from "../../../../model/profile.ts";
import { requestWithSingleCalls, withSingleCalls } from "../../../../model/single-calls.ts";
import type { Taint } from "../../../../model/taint.ts";
import { defined } from "../../../../shared/defined.ts";
import type { JsonObject } from "../../../../shared/json.ts";
import { type ConversationIdentity, chainOf } from "../state.ts";
import type { CallingTurn, Turn } from "../turn.ts";
import { baseContext, sentMoves } from "./context.ts";

/** A request: a context, and the messages that follow it. */
export interface PlannedRequest {
  base: ModelContext;
  /** The provider's request from a context hook, which replaces `base`. */
  assembled?: JsonObject;
  moves: readonly ContextMessage[];
  /** Replaces the choice of tools in `assembled`; absent if the request keeps its own. */
  toolChoice?: ModelContext["toolChoice"];
  taint?: Taint;
}

/** The parts of a request. Each read may fail. */
export interface RequestSources {
  history(): readonly ContextMessage[];
  /** The finished turns of other agents that the cycle shows. */
  shownTurns(): readonly Turn[];
}

export function requestProfile(record: ConversationIdentity, turn: CallingTurn): ModelProfile {
  const limited = withOutputLimit(ownProfile(record, turn), turn.maxOutputTokens);
  return turn.singleCalls ? withSingleCalls(limited) : limited;
}

/** Returns the request of a turn's model call. */
export function plannedRequest(
  record: ConversationIdentity,
  turn: CallingTurn,
  { history, shownTurns }: RequestSources,
): PlannedRequest {
  const chain = chainOf(record, turn.agentId);
  const profile = requestProfile(record, turn);
  if (turn.request !== undefined) {
    const own = ownProfile(record, turn);
    const given = requestWithOutputLimit(turn.request, own, turn.maxOutputTokens);
    const assembled = turn.singleCalls ? requestWithSingleCalls(given, own) : given;
    const base = { ...baseContext(record, [], turn), messages: [] };
    const moves = sentMoves(chain, profile, turn, []);
    const { toolChoice: asked = "auto" } = turn;
    const toolChoice = asked !== "auto" || turn.call.final ? base.toolChoice : undefined;
    return { base, assembled, moves, ...defined({ toolChoice, taint: turn.requestTaint }) };
  }
  const base = baseContext(record, history(), turn, shownTurns());
  return { base, moves: sentMoves(chain, profile, turn, base.messages) };
}

function ownProfile(record: ConversationIdentity, { agentId, call }: CallingTurn): ModelProfile {
  const chain = chainOf(record, agentId);
  return profileAt(chain, call.profile ?? 0) ?? chain.modelProfile.definition;
}
