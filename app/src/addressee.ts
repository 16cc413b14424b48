/**
 * The agent that the next message of the reader is for. Pure.
 *
 * NEXT-1  The server's rule (ADDRESS-1, ADDRESS-2) for the loaded turns: the first mentioned agent of the conversation, then the agent of
 *         the newest answered turn, then the first agent. If several people take part, only a mention is certain.
 */
import type { LiveConversation, TurnState } from "../../src/client/index.ts";
import { MENTION } from "../../src/shared/identifiers.ts";

export interface Addressee {
  /** The agent's id; absent if it is not certain. */
  agentId?: string;
  /** The first mentioned name, if the text mentions no agent of the conversation. */
  unknown?: string;
}

/** Returns the agent that a message with this text is for; `null` before the conversation is loaded. */
export function addresseeOf({ conversation, turns }: LiveConversation, text: string): Addressee | null {
  if (conversation === null) return null;
  const { participants, agentId: first } = conversation;
  const agents = participants.flatMap(({ type, id }) => (type === "agent" ? [id] : []));
  const mentioned = [...text.matchAll(MENTION)].map(([, name = ""]) => name.toLowerCase());
  const named = mentioned.find((name) => agents.includes(name));
  if (named !== undefined) return { agentId: named };
  const [unknown] = mentioned;
  const mark = unknown === undefined ? {} : { unknown };
  const people = participants.filter(({ type }) => type === "user").length;
  if (agents.length > 1 && people > 1) return mark;
  const last = turns.findLast((turn) => isAnswered(turn) && agents.includes(turn.agentId));
  return { agentId: (agents.length > 1 ? last?.agentId : undefined) ?? first, ...mark };
}

/** A turn counts if it completed with an answer, or waits. Failed and silent turns do not count. */
function isAnswered({ status, phase, silent }: TurnState): boolean {
  return status === "completed" ? silent !== true : status === "active" && phase === "waiting";
}
