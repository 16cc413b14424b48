/**
 * Requests for approval of agents that were called, as their callers show them. Pure.
 *
 * ASK-1  A call of a tool that waits for a person in the conversation of a call is shown in each conversation above it, up to that
 *        of the users, and is answered from there by its own operation id. The first answer counts, wherever it comes from.
 */
import { MAX_ASKS } from "../../../../protocol/agent-call.ts";
import type { AgentDecision } from "../decisions.ts";
import type { AgentAsked } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { openCalls } from "../turn.ts";

/** Plans after a request of an agent that was called, or after the answer to it. */
export function planAgentAsked(
  { active }: Pick<ConversationState, "active">,
  { turn: n, item, attempt, ask, outcome }: AgentAsked,
): AgentDecision[] {
  const turn = active.get(n);
  const operation = turn && openCalls(turn).find((call) => call.item === item);
  if (operation?.status !== "dispatched" || operation.attempt !== attempt) return [];
  const asks = operation.agent?.asks ?? [];
  const isKnown = asks.some(({ operationId }) => operationId === ask.operationId);
  if (outcome !== undefined) return isKnown ? [{ type: "NOTE_ANSWER", turn: n, item, ask, outcome }] : [];
  return isKnown || asks.length >= MAX_ASKS ? [] : [{ type: "NOTE_ASK", turn: n, item, ask }];
}
