/** What an agent keeps in its actor's database: its identity, and one row for each of its conversations. */
import type { KeyValue } from "../../ports/key-value.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { AgentIdentity } from "../../protocol/agent-api.ts";
import { DramatisError } from "../../shared/errors.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import type { Page, PageOptions } from "../../shared/page.ts";
import { type ActorSchema, VersionedRecord } from "../base/storage/schema-upgrade.ts";

export const AGENT_SCHEMA: ActorSchema = { of: "agent", first: 1, steps: [] };

const IDENTITY_KEY = "identity";
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

const CREATE =
  "CREATE TABLE IF NOT EXISTS conversations (id TEXT PRIMARY KEY, added_at INTEGER NOT NULL) WITHOUT ROWID";
const ADD = "INSERT INTO conversations (id, added_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING";
/** Conversation ids sort by creation. */
const FORWARD = "SELECT id, added_at FROM conversations WHERE id > ? ORDER BY id LIMIT ?";
const BACKWARD = "SELECT id, added_at FROM conversations WHERE id < ? ORDER BY id DESC LIMIT ?";
const AFTER_ALL = "conv~";

export class AgentStore {
  readonly #identity: VersionedRecord<AgentIdentity>;

  constructor(
    private readonly database: SqlDatabase,
    keyValue: KeyValue,
  ) {
    this.#identity = new VersionedRecord(AGENT_SCHEMA, { database, keyValue }, IDENTITY_KEY);
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  checkVersion(): void {
    this.#identity.get();
  }

  /** Throws `CONFLICT` if there is an identity already. */
  create(identity: AgentIdentity): void {
    this.database.transaction(() => {
      if (this.#identity.get() !== undefined) {
        throw new DramatisError("CONFLICT", `The agent "${identity.id}" exists already; choose another id.`);
      }
      this.database.run(CREATE);
      this.#identity.put(identity);
    });
  }

  update(identity: AgentIdentity): void {
    this.#identity.put(identity);
  }

  /** Throws `NOT_FOUND` before the agent was created, `UNAVAILABLE` if a newer release stored it. */
  identity(): AgentIdentity {
    const identity = this.#identity.get();
    if (identity === undefined) throw new DramatisError("NOT_FOUND", "There is no such agent.");
    return identity;
  }

  /** Twice is once. Throws `NOT_FOUND` before the agent was created. */
  addConversation(id: string, now: number): void {
    this.identity();
    this.database.run(ADD, id, now);
  }

  /** Throws as `identity` does. */
  conversations({ limit = DEFAULT_LIMIT, cursor, order = "asc" }: PageOptions = {}): Page<{
    id: string;
    addedAt: string;
  }> {
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw new DramatisError("INVALID_INPUT", `Give a limit from 1 to ${MAX_LIMIT}.`);
    }
    if (cursor !== undefined && !isConversationId(cursor)) {
      throw new DramatisError("INVALID_INPUT", "Give back a `nextCursor` as it was.");
    }
    this.identity();
    const start = cursor ?? (order === "asc" ? "" : AFTER_ALL);
    const rows = this.database.all<{ id: string; added_at: number }>(
      order === "asc" ? FORWARD : BACKWARD,
      start,
      limit + 1,
    );
    const items = rows
      .slice(0, limit)
      .map((row) => ({ id: row.id, addedAt: new Date(row.added_at).toISOString() }));
    const last = items.at(-1);
    return { items, ...(rows.length > limit && last !== undefined ? { nextCursor: last.id } : {}) };
  }
}
