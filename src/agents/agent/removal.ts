/**
 * The deletion of an agent. One commit puts a tombstone in the place of its identity: from then on there is no such agent. The rest is
 * removed by a job: its conversations first, then its rows, its objects and its own database.
 *
 * DELETE-5  Authors and administrators delete agents.
 * DELETE-6  A deletion is durable when it is acknowledged. From then on reads, changes, calls and new conversations get `NOT_FOUND`, and its
 *           id never refers to another agent: a declaration in code does not bring it back.
 */

import type { Clock } from "../../ports/clock.ts";
import type { ConversationApi } from "../../protocol/conversation-api.ts";
import { unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { deleteValues, dropOwnTables } from "../base/removal/own-tables.ts";
import type { OwnedStore } from "../base/removal/owned-stores.ts";
import { Removal, type RemovalStep } from "../base/removal/removal.ts";
import type { ActorStores } from "../base/storage/schema-upgrade.ts";
import { StorageRefusal } from "../base/storage/schema-upgrade.ts";
import type { Wakeup } from "../base/timers/wakeups.ts";
import { AGENT_KEYS, type AgentStore, type AgentTombstone } from "./store.ts";

export interface AgentRemovalPorts extends ActorStores {
  clock: Clock;
  store: AgentStore;
  wakeup: Wakeup;
  /** Returns the stores outside of the actor. */
  stores(): readonly OwnedStore[];
  /** As `Mailbox.forget`. */
  forgetMail(): boolean;
  /** Finds the actor of a conversation of the tenant. */
  conversation(tenant: string, id: string): Promise<Pick<ConversationApi, "removeAgent">>;
}

/** Conversations that are read at once. */
const PAGE = 50;
/** Time after which what was written to a store when the deletion began is there, in milliseconds. */
const LATE_WRITE_MS = 60_000;
const MAIL_PAUSE_MS = 60_000;

export class AgentRemoval {
  readonly #removal: Removal;

  constructor(private readonly ports: AgentRemovalPorts) {
    this.#removal = new Removal({
      clock: ports.clock,
      wakeup: ports.wakeup,
      left: () => this.#left(),
      done: (name) => this.#done(name),
      steps: () => this.#steps(),
    });
  }

  /** Reports whether the agent was deleted. Throws `UNAVAILABLE` for storage of a newer release. */
  get isDeleted(): boolean {
    return this.#tombstone !== undefined;
  }

  /** Reports whether the agent is known to be deleted: not where its storage is of a newer release. */
  get isKnownDeleted(): boolean {
    try {
      return this.isDeleted;
    } catch (error) {
      if (error instanceof StorageRefusal) return false;
      throw error;
    }
  }

  /** As `Removal.wake`. */
  wake(): number | null {
    return this.#removal.wake();
  }

  /** Deletes the agent. Throws `NOT_FOUND`. Resolves when the deletion is durable. */
  async remove(): Promise<void> {
    const { database, store, clock } = this.ports;
    const { armed } = database.transaction(() => {
      const { id, tenant, createdAt } = store.identity();
      const left = this.#steps().map(({ name }) => name);
      store.bury({ id, tenant, createdAt: Date.parse(createdAt), deletedAt: clock.now(), left });
      return { armed: this.#removal.note() };
    });
    await armed;
    void this.#removal.run();
  }

  get #tombstone(): AgentTombstone | undefined {
    return this.ports.store.tombstone();
  }

  /** The steps that are left. Those of stores that the application no longer has are left out. */
  #left(): string[] {
    const { left = [] } = this.#tombstone ?? {};
    if (left.length === 0) return [];
    const known = new Set(this.#steps().map(({ name }) => name));
    return left.filter((name) => known.has(name));
  }

  #done(name: string): void {
    const tombstone = this.#tombstone;
    if (tombstone === undefined) return;
    this.ports.store.bury({ ...tombstone, left: tombstone.left.filter((step) => step !== name) });
  }

  #steps(): RemovalStep[] {
    const stores = this.ports.stores();
    return [
      { name: "conversations", run: () => this.#leaveConversations() },
      ...stores.map(({ name, empty }) => ({ name, run: () => this.#emptied([empty]) })),
      {
        name: "own",
        isAfterAll: true as const,
        run: async () => this.#emptyOwn(),
      },
      { name: "late", isAfterAll: true as const, run: () => this.#removeLate(stores) },
      {
        name: "mail",
        isAfterAll: true as const,
        run: async () => (this.ports.forgetMail() ? undefined : MAIL_PAUSE_MS),
      },
    ];
  }

  async #emptied(empties: readonly OwnedStore["empty"][]): Promise<undefined> {
    const tombstone = this.#tombstone;
    if (tombstone === undefined) return;
    const { tenant, id, createdAt } = tombstone;
    for (const empty of empties) await empty({ kind: "agent", tenant, id, createdAt });
  }

  /** Empties the stores once more: a write that was under way when the deletion began may have come later. */
  async #removeLate(stores: readonly OwnedStore[]): Promise<number | undefined> {
    const wait = (this.#tombstone?.deletedAt ?? 0) + LATE_WRITE_MS - this.ports.clock.now();
    if (wait > 0) return wait;
    this.#emptyOwn();
    return this.#emptied(stores.map(({ empty }) => empty));
  }

  #emptyOwn(): undefined {
    const { database, keyValue } = this.ports;
    dropOwnTables({ database, keyValue });
    deleteValues({ database, keyValue }, AGENT_KEYS);
  }

  /** Takes the agent out of its conversations, and each of them off the index. */
  async #leaveConversations(): Promise<undefined> {
    const { store, conversation } = this.ports;
    const tombstone = this.#tombstone;
    if (tombstone === undefined) return;
    const { tenant, id: agentId } = tombstone;
    const admin: Principal = { subject: "system", tenant, roles: ["admin"] };
    for (let ids = store.firstConversations(PAGE); ids.length > 0; ids = store.firstConversations(PAGE)) {
      for (const id of ids) {
        unwrap(await (await conversation(tenant, id)).removeAgent(admin, agentId));
        store.removeConversation(id);
      }
    }
  }
}
