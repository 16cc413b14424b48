/**
 * Deletes an agent. One commit replaces its identity with a tombstone. From then on the agent does not exist. A job removes the rest: first
 * its conversations, then its rows, its objects and its database.
 *
 * DELETE-5  Authors and administrators delete agents.
 * DELETE-6  A deletion is durable when it is acknowledged. From then on reads, changes, calls and new conversations get `NOT_FOUND`. Its id
 *           never refers to another agent. A declaration in code does not restore it.
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
  /** Keeps the numbers of the vectors of the agent's memories in the vector store, in the transaction of the deletion. */
  retainVectors(): ActorTombstone["vectors"];
  conversation(tenant: string, id: string): Promise<Pick<ConversationApi, "removeAgent">>;
}

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

  get isDeleted(): boolean {
    return this.#removal.isDeleted;
  }

  /** Reports whether the agent is known to be deleted. `false` if a newer release stored the agent. */
  get isKnownDeleted(): boolean {
    try {
      return this.isDeleted;
    } catch (error) {
      if (error instanceof StorageRefusal) return false;
      throw error;
    }
  }

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
        ...defined({ vectors: this.ports.retainVectors() }),
      };
      return { armed: this.#removal.bury(owner) };
    });
    await armed;
    void this.#removal.run();
  }

  /** Removes the agent from its conversations, and each conversation from the index. */
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
