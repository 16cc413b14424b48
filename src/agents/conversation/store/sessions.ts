/**
 * A conversation's sessions: one per agent, its id the agent's id, derived from the record. They are written by turns
 * only.
 */
import type { SessionTable } from "../../../memory/session/session-store.ts";
import type { StoredSession } from "../../../memory/session/types.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { ConversationDatabase } from "./conversation-database.ts";

export class ConversationSessions implements SessionTable {
  constructor(private readonly store: ConversationDatabase) {}

  insert(): never {
    throw refused();
  }

  delete(): never {
    throw refused();
  }

  reserve(): never {
    throw refused();
  }

  get(sessionId: string): StoredSession | undefined {
    return this.list().find((session) => session.id === sessionId);
  }

  list(): StoredSession[] {
    const state = this.store.load();
    const newest = state === null ? null : this.store.journal.newest();
    if (state === null || newest === null) return [];
    const { agentId, createdAt } = state.record;
    const updatedAt = newest.row.at;
    return [{ id: agentId, agent_id: agentId, created_at: createdAt, updated_at: updatedAt, metadata: null }];
  }
}

/** Sessions of a conversation change through its one door only. */
export function refused(): DramatisError {
  return new DramatisError(
    "FORBIDDEN",
    "A conversation's session is written by its turns; send a signal to `ingest`.",
  );
}
