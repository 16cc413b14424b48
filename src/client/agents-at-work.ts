/**
 * The agents of a conversation with their current work and their spending: a view of the state for user interfaces.
 *
 * VIEW-3  The amounts of all agents add up to the loaded turns that have ended. The spending of a call, with all calls below it, counts for
 *         the called agent.
 */
import type { Budget } from "../protocol/budget.ts";
import type { SpendingView } from "../protocol/usage-schemas.ts";
import type { LiveConversation, OperationState, TurnState } from "./state.ts";

/** An agent that takes part in a conversation, or that others called there. */
export interface AgentAtWork {
  agentId: string;
  /** `false` for an agent that only answers calls, in conversations of its own. */
  isParticipant: boolean;
  /** Current tasks, oldest first. */
  tasks: readonly AgentTask[];
  spent: SpendingView;
}

/** A turn of an agent. If the agent answers a call, the call and the caller's turn. */
export interface AgentTask {
  turn: TurnState;
  call?: OperationState;
}

/** Returns the participating agents by the order of their joins, then other agents by their first turns and calls. */
export function agentsAtWork({ conversation, turns }: LiveConversation): AgentAtWork[] {
  const joined = (conversation?.participants ?? []).filter(({ type }) => type === "agent");
  const tasks = turns.flatMap((turn) => [{ turn }, ...callsOf(turn)]);
  const ids = new Set([...joined.map(({ id }) => id), ...tasks.map(agentOf)]);
  return [...ids].map((agentId) => {
    const own = tasks.filter((task) => agentOf(task) === agentId);
    return {
      agentId,
      isParticipant: joined.some(({ id }) => id === agentId),
      tasks: own.filter(isOpen),
      spent: own.map(spentBy).reduce((sum, spent) => combine(sum, spent, 1), NOTHING),
    };
  });
}

/** Returns the calls of agents that work in their own conversations. An agent that joins this conversation has turns here. */
function callsOf(turn: TurnState): AgentTask[] {
  return turn.items.flatMap((item) =>
    item.type === "tool" && item.operation.agent?.conversationId !== undefined
      ? [{ turn, call: item.operation }]
      : [],
  );
}

function agentOf({ turn, call }: AgentTask): string {
  return call?.agent?.id ?? turn.agentId;
}

function isOpen({ turn, call }: AgentTask): boolean {
  return turn.status === "active" && (call === undefined || call.state === "running");
}

/** The spending of a turn includes its calls. */
function spentBy({ turn, call }: AgentTask): SpendingView {
  if (call !== undefined) return call.agent?.spent ?? NOTHING;
  if (turn.spent === undefined) return NOTHING;
  return callsOf(turn).reduce((rest, one) => combine(rest, spentBy(one), -1), turn.spent);
}

const NOTHING: SpendingView = { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 };

/** Adds or subtracts amounts. Never below 0: a call that was stopped may report more after its turn. */
function combine(one: SpendingView, other: SpendingView, sign: 1 | -1): SpendingView {
  const of = (amount: keyof Budget) => Math.max(0, one[amount] + sign * other[amount]);
  return {
    tokens: of("tokens"),
    // Whole billionths, as the server counts them.
    usd: Math.round(of("usd") * 1e9) / 1e9,
    toolCalls: of("toolCalls"),
    modelCalls: of("modelCalls"),
    ...(one.estimated || other.estimated ? { estimated: true } : {}),
  };
}
