/** The storage of an agent in its actor's database: its identity, and one row per conversation. */
import type { AgentIdentity } from "../../protocol/agent-api.ts";
import { conflict, invalid, notFound } from "../../shared/errors.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { didYouMean, listIds } from "../../shared/known-ids.ts";
import { bothOrders, type Page, type PageOptions, pageOf, pageOptionsSchema } from "../../shared/page.ts";
import { toIso } from "../../shared/time.ts";
import { validate } from "../../shared/validation.ts";
import type { ActorTombstone } from "../base/removal/actor-removal.ts";
import { type ActorSchema, type ActorStores, VersionedRecord } from "../base/storage/schema-upgrade.ts";

export const AGENT_SCHEMA: ActorSchema = { of: "agent", first: 1, steps: [] };

const IDENTITY_KEY = "identity";
/** The hash of the newest declaration in code. Absent if code never declared the agent. */
const DECLARED_KEY = "declared";

const CREATE =
  "CREATE TABLE IF NOT EXISTS conversations (id TEXT PRIMARY KEY, added_at INTEGER NOT NULL) WITHOUT ROWID";
const ADD = "INSERT INTO conversations (id, added_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING";
/** Conversation ids ascend by creation. */
const REMOVE = "DELETE FROM conversations WHERE id = ?";
const LIST = bothOrders(
  (comparison, order) =>
    `SELECT id, added_at FROM conversations WHERE id ${comparison} ? ORDER BY id ${order} LIMIT ?`,
);
const AFTER_ALL = "conv~";
/** Ids of other agents in an error. */
const MAX_KNOWN_AGENTS = 10;

const optionsSchema = pageOptionsSchema(isConversationId);

export class AgentStore {
  readonly #identity: VersionedRecord<AgentIdentity | ActorTombstone>;

  /** `idOf` returns the agent's id, for errors. */
  constructor(
    private readonly stores: ActorStores,
    private readonly idOf: () => string,
  ) {
    this.#identity = new VersionedRecord(AGENT_SCHEMA, stores, IDENTITY_KEY);
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  checkVersion(): void {
    this.#identity.get();
  }

  /** Throws `CONFLICT` if there is an identity already. */
  create(identity: AgentIdentity): void {
    const { database } = this.stores;
    database.transaction(() => {
      const known = this.#identity.get();
      if (known !== undefined) {
        const why = isTombstone(known) ? "was deleted" : "already exists";
        throw conflict(`The agent "${identity.id}" ${why}. Choose another id.`);
      }
      database.run(CREATE);
      this.#identity.put(identity);
    });
  }

  update(identity: AgentIdentity): void {
    this.#identity.put(identity);
  }

  declare(identity: AgentIdentity, hash: string): void {
    const { database, keyValue } = this.stores;
    database.transaction(() => {
      database.run(CREATE);
      this.#identity.put(identity);
      keyValue.put(DECLARED_KEY, hash);
    });
  }

  /** Returns the hash of the newest declaration in code, if any. */
  declaration(): string | undefined {
    return this.stores.keyValue.get<string>(DECLARED_KEY);
  }

  /** Returns `undefined` if the agent was never created, or was deleted. */
  find(): AgentIdentity | undefined {
    const found = this.#identity.get();
    return found === undefined || isTombstone(found) ? undefined : found;
  }

  tombstone(): ActorTombstone | undefined {
    const found = this.#identity.get();
    return found !== undefined && isTombstone(found) ? found : undefined;
  }

  /** Replaces the identity with a tombstone. The agent then no longer exists. */
  bury(tombstone: ActorTombstone): void {
    this.#identity.put(tombstone);
  }

  /**
   * Throws `NOT_FOUND` if the agent was never created or was deleted, and `UNAVAILABLE` if a newer release stored it. `known`: ids
   * of other agents, for the error.
   */
  identity(known: readonly string[] = []): AgentIdentity {
    const identity = this.find();
    if (identity !== undefined) return identity;
    const id = this.idOf();
    const others =
      known.length === 0 ? "" : ` Known agents: ${listIds(id, known.toSorted(), MAX_KNOWN_AGENTS)}.`;
    throw notFound(`There is no agent "${id}".${didYouMean(id, known)}${others}`);
  }

  /** Adds a conversation once. Throws `INVALID_INPUT` for an invalid id, and as `identity`. */
  addConversation(id: string, now: number): void {
    if (!isConversationId(id)) throw invalid("Give a conversation id.");
    this.identity();
    this.stores.database.run(ADD, id, now);
  }

  removeConversation(id: string): void {
    this.stores.database.run(REMOVE, id);
  }

  /** Returns the first conversations of the index, even for a deleted agent. */
  firstConversations(limit: number): string[] {
    const rows = this.stores.database.all<ConversationRow>(LIST.asc, "", limit);
    return rows.map(({ id }) => id);
  }

  /** Throws `INVALID_INPUT`, and as `identity`. */
  conversations(options: PageOptions = {}): Page<{ id: string; addedAt: string }> {
    const { limit, cursor, order } = validate(optionsSchema, options, "/options");
    this.identity();
    const start = cursor ?? (order === "asc" ? "" : AFTER_ALL);
    const rows = this.stores.database.all<ConversationRow>(LIST[order], start, limit + 1);
    return pageOf(rows, limit, toItem, ({ id }) => id);
  }
}

/** The key prefixes of an agent's stored values, except for its identity. */
export const AGENT_KEYS = [DECLARED_KEY, "budget", "importing", "memory:"] as const;

function isTombstone(stored: AgentIdentity | ActorTombstone): stored is ActorTombstone {
  return "deletedAt" in stored;
}

type ConversationRow = { id: string; added_at: number };

function toItem({ id, added_at }: ConversationRow): { id: string; addedAt: string } {
  return { id, addedAt: toIso(added_at) };
}
