/**
 * Deletes an agent. One commit replaces its identity with a tombstone, so the agent no longer exists. A job removes the rest: first
 * its conversations, then its rows, its objects and its database.
 *
 * DELETE-5  Authors and administrators delete agents.
 * DELETE-6  A deletion is durable when it is acknowledged. Later reads, changes, calls and new conversations get `NOT_FOUND`. Its id
 *           never refers to another agent. A declaration in code does not restore it.
 */
import type { ConversationApi } from "../../protocol/conversation-api.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { ActorRemoval, type ActorRemovalPorts, type ActorTombstone } from "../base/removal/actor-removal.ts";
import { AGENT_KEYS, type AgentStore } from "./store.ts";

export interface AgentRemovalPorts extends Omit<ActorRemovalPorts, "kind" | "keys" | "tombstone" | "bury"> {
  store: AgentStore;
  /** Keeps the numbers of the vectors of the agent's memories in the vector store, in the transaction of the deletion. */
  retainVectors(): ActorTombstone["vectors"];
  conversation(tenant: string, id: string): Promise<Pick<ConversationApi, "removeAgent">>;
}

const PAGE = 50;

export class AgentRemoval extends ActorRemoval<AgentRemovalPorts & ActorRemovalPorts> {
  protected override readonly first = "conversations";

  constructor(ports: AgentRemovalPorts) {
    const { store } = ports;
    super({
      ...ports,
      kind: "agent",
      keys: AGENT_KEYS,
      tombstone: () => store.tombstone(),
      bury: (tombstone) => store.bury(tombstone),
    });
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
      return { armed: this.bury(owner) };
    });
    await armed;
    void this.run();
  }

  /** Removes the agent from its conversations, and each conversation from the index. */
  protected override async removeFirst({ tenant, id: agentId }: ActorTombstone): Promise<undefined> {
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
