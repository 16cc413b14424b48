/**
 * The agent that a message is for. Pure.
 *
 * ADDRESS-1  `to` names an agent among the participants; any other name is rejected with a list of the participants. Without `to`, the
 *            first mention `@agent-id` of a participant in the text decides.
 * ADDRESS-2  Otherwise a message is for the author of the message that it replies to. The next choices are the agent of this user's newest
 *            answered turn, also if another agent started it, and the primary agent. Agents that left are skipped.
 * ADDRESS-3  The model of an agent gets the newest messages to other agents and their answers, as quotes with the names of the speakers:
 *            text only, no tool calls. They are read when a request is made, as of the beginning of its cycle, and stored once: in the
 *            sessions of the agents that they belong to.
 * ADDRESS-4  If several people have taken part, each message of a user begins with the name of its speaker. Lines of the message that begin
 *            like such a name are marked, so a user cannot imitate another speaker.
 */
import { plainText } from "../../../../shared/content.ts";
import { invalid } from "../../../../shared/errors.ts";
import { MENTION } from "../../../../shared/identifiers.ts";
import { originOf } from "../caller.ts";
import { MAX_SHOWN_TURNS } from "../conversation-limits.ts";
import type { ListedTurn, PlanInput, StoredTurns } from "../decisions.ts";
import { exchangeOf } from "../exchange.ts";
import type { UserMessage } from "../signals.ts";
import {
  type ConversationAgent,
  type ConversationIdentity,
  type ConversationState,
  isPresent,
  primaryAgent,
} from "../state.ts";
import type { Turn } from "../turn.ts";

/** Returns the agent that a message is for. Throws `INVALID_INPUT` for an agent that does not take part. */
export function addressee(
  state: Pick<ConversationState, "record" | "active">,
  { caller, data: { to, content }, replied }: UserMessage,
  { turns }: Pick<PlanInput, "turns">,
): ConversationAgent {
  const present = presentAgents(state.record);
  const find = (id: string | undefined) => present.find((agent) => agent.id === id);
  if (to !== undefined) return find(to) ?? refuse(to, present);
  const primary = primaryAgent(state.record);
  if (present.length === 1) return primary;
  const author = replied?.role === "agent" && replied.by?.type === "agent" ? replied.by.agentId : undefined;
  return (
    mentionedIn(plainText(content))
      .map(find)
      .find((agent) => agent !== undefined) ??
    find(author) ??
    find(lastSpeaker(state, caller, turns)) ??
    primary
  );
}

/** Returns the names that a text mentions, in order. */
export function mentionedIn(text: string): string[] {
  return [...text.matchAll(MENTION)].map(([, name = ""]) => name.toLowerCase());
}

/** Returns the agents that take part now. */
export function presentAgents(
  record: Pick<ConversationIdentity, "agents" | "participants">,
): ConversationAgent[] {
  return record.agents.filter(({ id }) => isPresent(record, id));
}

/** Returns the agent of the newest turn of a user that has been answered. */
function lastSpeaker(
  { active }: Pick<ConversationState, "active">,
  caller: Turn["caller"],
  turns: StoredTurns | undefined,
): string | undefined {
  const isOwn = (turn: Pick<ListedTurn, "n" | "caller" | "exchange">) =>
    originOf(exchangeOf(turn).by) === originOf(caller);
  const waiting = [...active.values()]
    .filter((turn) => turn.waiting !== undefined && isOwn(turn))
    .sort((one, other) => other.n - one.n)[0];
  const [over] = turns?.newest(1, (turn) => turn.status === "completed" && !turn.silent && isOwn(turn)) ?? [];
  if (waiting === undefined || (over !== undefined && over.n > waiting.n)) return over?.agentId;
  return waiting.agentId;
}

/** Returns the numbers of the newest finished turns of other agents, ascending; `undefined` if there is no such turn (ADDRESS-3). */
export function turnsOfOtherAgents(
  { record }: Pick<ConversationState, "record">,
  agentId: string,
  { turns, ended = [] }: Pick<PlanInput, "turns" | "ended">,
): readonly number[] | undefined {
  if (record.agents.length === 1) return undefined;
  const { since } = record.agents.find(({ id }) => id === agentId) ?? {};
  const isInHandoff = ({ n }: ListedTurn) =>
    since !== undefined && n <= since.turn && !since.open.includes(n);
  const isOther = (turn: ListedTurn) =>
    turn.status !== "active" && turn.agentId !== agentId && !isInHandoff(turn);
  const stored = turns?.newest(MAX_SHOWN_TURNS, isOther) ?? [];
  const numbers = new Set([...stored, ...ended.filter(isOther)].map(({ n }) => n));
  const newest = [...numbers].sort((one, other) => one - other).slice(-MAX_SHOWN_TURNS);
  return newest.length === 0 ? undefined : newest;
}

function refuse(to: string, present: readonly ConversationAgent[]): never {
  const known = present.map(({ id }) => `"${id}"`).join(", ");
  throw invalid(`/to: No agent "${to}" takes part in this conversation.`, {
    errors: [{ path: "/to", message: `Must be one of the agents that take part: ${known}.` }],
  });
}
