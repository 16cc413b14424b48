/**
 * The deletion of an agent. One commit puts a tombstone in the place of its identity: from then on there is no such agent. The rest is
 * removed by a job: its conversations first, then its rows, its objects and its own database.
 *
 * DELETE-5  Authors and administrators delete agents.
 * DELETE-6  A deletion is durable when it is acknowledged. From then on reads, changes, calls and new conversations get `NOT_FOUND`, and its
 *           id never refers to another agent: a declaration in code does not bring it back.
 */

import type { ConversationApi } from "../../protocol/conversation-api.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { ActorRemoval, type ActorRemovalPorts, type ActorTombstone } from "../base/removal/actor-removal.ts";
import { StorageRefusal } from "../base/storage/schema-upgrade.ts";
import { AGENT_KEYS, type AgentStore } from "./store.ts";

export interface AgentRemovalPorts
  extends Omit<ActorRemovalPorts, "kind" | "keys" | "tombstone" | "bury" | "first"> {
  store: AgentStore;
  /** Keeps, in the transaction of the deletion, the numbers of the vectors that the store of vectors may have of the agent's memories. */
  keepVectors(): ActorTombstone["vectors"];
  /** Finds the actor of a conversation of the tenant. */
  conversation(tenant: string, id: string): Promise<Pick<ConversationApi, "removeAgent">>;
}

/** Conversations that are read at once. */
const PAGE = 50;

export class AgentRemoval {
  readonly #removal: ActorRemoval;

  constructor(private readonly ports: AgentRemovalPorts) {
    const { store } = ports;
    this.#removal = new ActorRemoval({
      ...ports,
      kind: "agent",
      keys: AGENT_KEYS,
      tombstone: () => store.tombstone(),
      bury: (tombstone) => store.bury(tombstone),
      first: { name: "conversations", run: (tombstone) => this.#leaveConversations(tombstone) },
    });
  }

  /** As `ActorRemoval.isDeleted`. */
  get isDeleted(): boolean {
    return this.#removal.isDeleted;
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
    const { database, store } = this.ports;
    const { armed } = database.transaction(() => {
      const { id, tenant, createdAt } = store.identity();
      const owner = {
        id,
        tenant,
        createdAt: Date.parse(createdAt),
        ...defined({ vectors: this.ports.keepVectors() }),
      };
      return { armed: this.#removal.bury(owner) };
    });
    await armed;
    void this.#removal.run();
  }

  /** Takes the agent out of its conversations, and each of them off the index. */
  async #leaveConversations({ tenant, id: agentId }: ActorTombstone): Promise<void> {
    const { store, conversation } = this.ports;
    const admin: Principal = { subject: "system", tenant, roles: ["admin"] };
    for (let ids = store.firstConversations(PAGE); ids.length > 0; ids = store.firstConversations(PAGE)) {
      for (const id of ids) {
        unwrap(await (await conversation(tenant, id)).removeAgent(admin, agentId));
        store.removeConversation(id);
      }
    }
  }
}
