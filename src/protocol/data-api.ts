/** The RPC methods that delete conversations and agents, and erase their content. */
import type { Result } from "../shared/errors.ts";
import type { Principal } from "../shared/principal.ts";
import type { LostFiles } from "./saved-workspace.ts";

export interface ConversationDataApi {
  /**
   * Deletes the conversation: its work stops, and later requests get `NOT_FOUND`. A job removes its data. Operators, and principals that
   * may end the conversation, may delete it.
   */
  remove(principal: Principal): Promise<Result<null>>;
  /**
   * Removes a deleted agent from the conversation. The agent's actor calls it. If the agent was the only agent, the
   * conversation is deleted. It is a no-op if there is no conversation.
   */
  removeAgent(principal: Principal, agentId: string): Promise<Result<null>>;
  /**
   * Erases the content of an entry by the id of its message or operation. It erases the transcript, the journal, the
   * sessions of agents, summaries, attachments, and knowledge that agents learned only from this entry. A placeholder
   * remains. Repeating it is a no-op. `CONFLICT`, retriable, while its turn is active. `NOT_FOUND` for an unknown
   * entry.
   */
  eraseEntry(principal: Principal, id: string): Promise<Result<null>>;
  /**
   * Returns the conversation as lines of JSON: record, journal, turns, events, keys and attachments. For principals that may delete it.
   * `CONFLICT`, retriable, while turns are active.
   */
  exportLines(principal: Principal): Promise<Result<ReadableStream<Uint8Array>>>;
  /**
   * Imports lines of an export, in order, into a conversation that does not exist. The conversation appears after the
   * last part. An unfinished import can restart, and is removed after an hour. Only administrators may import,
   * because a file contains versions of personas and tools. `INVALID_INPUT` names the wrong line. Returns the end of the import after the
   * last part.
   */
  importLines(principal: Principal, part: ImportPart): Promise<Result<ImportEnd | null>>;
  /** Takes the lines of a fork, in order. The actor of the forked conversation calls it. Otherwise like `importLines`. */
  takeFork(part: ImportPart): Promise<Result<null>>;
}

export interface AgentDataApi {
  /**
   * Deletes the agent, its memory, and the conversations without another agent. Later calls fail with `NOT_FOUND`.
   * `FORBIDDEN` without the role of an author.
   */
  remove(principal: Principal): Promise<Result<null>>;
  /** Returns the agent as lines of JSON, for authors: identity, and memories with their logs and sources. */
  exportLines(principal: Principal): Promise<Result<ReadableStream<Uint8Array>>>;
  /**
   * Imports lines of an export into an agent that does not exist. Requires the role of an author. Otherwise like the
   * import of a conversation.
   */
  importLines(principal: Principal, part: ImportPart): Promise<Result<null>>;
}

export interface ImportEnd {
  /** The repositories with files that were not restored. */
  notRestored: LostFiles[];
}

export interface ImportPart {
  /** The number of the first line, from 1. The first part restarts the import. */
  from: number;
  /** Names the transfer. Parts of a transfer that another transfer has restarted are refused. */
  attempt?: string;
  lines: string[];
  /** This is the last part. The imported conversation or agent becomes visible. */
  isLast: boolean;
}
