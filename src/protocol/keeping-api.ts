/** The part of the interface of conversations and agents that deletes them and what they hold. */
import type { Result } from "../shared/errors.ts";
import type { Principal } from "../shared/principal.ts";

export interface ConversationKeepingApi {
  /**
   * Deletes the conversation: its work stops, and from then on everything is `NOT_FOUND`. Its data follow by themselves. Whoever may end
   * it may delete it, and operators.
   */
  remove(principal: Principal): Promise<Result<null>>;
  /**
   * Takes a deleted agent out of the conversation, for its actor: the conversation is deleted where the agent was its only one. Does
   * nothing where there is no conversation.
   */
  removeAgent(principal: Principal, agentId: string): Promise<Result<null>>;
  /**
   * Erases the content of an entry by the id of its message or operation: from the transcript, the journal, the sessions of agents, summaries,
   * attachments, and what agents learned from it alone. A placeholder stays. Repeating it changes nothing. `CONFLICT`, retriable, while its
   * turn is active; `NOT_FOUND` for an unknown entry.
   */
  eraseEntry(principal: Principal, id: string): Promise<Result<null>>;
  /**
   * Returns the conversation as lines of JSON, for who may delete it: record, journal, turns, events, keys and attachments. `CONFLICT`,
   * retriable, while turns are active.
   */
  exportLines(principal: Principal): Promise<Result<ReadableStream<Uint8Array>>>;
  /**
   * Takes lines of an export, in order, into a conversation that does not exist. It is there once the last part is taken, and not before: what was
   * begun can be begun anew, and is removed after an hour. For administrators: a file brings versions of personas and tools. `INVALID_INPUT`
   * names the line that is wrong.
   */
  importLines(principal: Principal, part: ImportPart): Promise<Result<null>>;
}

export interface AgentKeepingApi {
  /**
   * Deletes the agent with its memory, and the conversations of which it is the only agent. From then on everything is `NOT_FOUND`.
   * `FORBIDDEN` without the role of an author.
   */
  remove(principal: Principal): Promise<Result<null>>;
  /** Returns the agent as lines of JSON, for authors: identity, and memories with their logs and sources. */
  exportLines(principal: Principal): Promise<Result<ReadableStream<Uint8Array>>>;
  /** Takes lines of an export into an agent that does not exist, for authors. Otherwise as that of a conversation. */
  importLines(principal: Principal, part: ImportPart): Promise<Result<null>>;
}

/** Lines of a file to import. */
export interface ImportPart {
  /** The number of the first line, from 1. The first part begins the import anew. */
  from: number;
  lines: string[];
  /** No part follows: what was imported becomes visible. */
  isLast: boolean;
}
