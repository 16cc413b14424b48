/**
 * Requests for approval of agents that were called, as their callers show them. Pure.
 *
 * ASK-1  A call of a tool that waits for a person in the conversation of a call is shown in each conversation above it, up to that of the
 *        users, and is answered from there by its own operation id. The first answer counts, from any of these conversations.
 * ASK-6  If the answer overtakes a request, the request is not shown.
 */
import { MAX_ASKS, MAX_CONVERSATION_ASKS } from "../../../../protocol/agent-call.ts";
import type { AgentDecision } from "../decisions.ts";
import { withAsk } from "../operation.ts";
import type { AgentAsked } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { blockingOperations, openCalls } from "../turn.ts";
import { announceWait } from "./results.ts";

/** Plans after a request of an agent that was called, or after the answer to it. */
export function planAgentAsked(
  { active }: Pick<ConversationState, "active">,
  { turn: n, item, attempt, ask, outcome }: AgentAsked,
): AgentDecision[] {
  const turn = active.get(n);
  if (turn === undefined) return [];
  const operation = openCalls(turn).find((call) => call.item === item);
  if (operation?.status !== "dispatched" || operation.attempt !== attempt) return [];
  const { asks = [], answered = [] } = operation.agent ?? {};
  if (answered.includes(ask.operationId)) return [];
  if (outcome !== undefined) return [{ type: "NOTE_ANSWER", turn: n, item, ask, outcome }];
  const isKnown = asks.some(({ operationId }) => operationId === ask.operationId);
  if (isKnown || asks.length >= MAX_ASKS || asksIn(active) >= MAX_CONVERSATION_ASKS) return [];
  const blocking = blockingOperations(turn);
  const left = blocking.map((one) => (one.item === item ? withAsk(one, ask) : one));
  return [{ type: "NOTE_ASK", turn: n, item, ask }, ...announceWait(n, blocking, left)];
}

/** Returns the number of requests that the open calls of all turns show. */
function asksIn(active: ConversationState["active"]): number {
  const calls = [...active.values()].flatMap(openCalls);
  return calls.reduce((sum, { agent }) => sum + (agent?.asks?.length ?? 0), 0);
}
