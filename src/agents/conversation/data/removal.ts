/**
 * The deletion of a conversation. One commit stops its work and replaces its record with a tombstone. It also requests its agents to delete
 * the memories that only this conversation supports. Afterwards all entry points answer that the conversation does not exist. A job removes
 * the other data.
 *
 * DELETE-1  Principals that may end a conversation, and operators, may delete it. Other principals get `FORBIDDEN`, or `NOT_FOUND` without
 *           read access.
 * DELETE-2  A deletion is durable when it is acknowledged, also during outages of other services. Afterwards reads, messages, results and
 *           connections get `NOT_FOUND`, and open connections and streams are closed. Its id is never reused.
 * DELETE-3  The conversations that its calls of agents opened are deleted with it. So are the workspaces of the runs that its calls started.
 * DELETE-4  A deleted agent leaves its conversations. A conversation without another agent fails (LIFE-5), and stays readable.
 */
import { calledConversationId, calledRunId, operationId } from "../../../protocol/ids.ts";
import { MEMORY_SOURCES_ERASED } from "../../../protocol/memory.ts";
import { workspaceOf } from "../../../protocol/workspace.ts";
import { unwrap } from "../../../shared/errors.ts";
import { type Jurisdiction, jurisdictionOf } from "../../../shared/location.ts";
import type { Principal } from "../../../shared/principal.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import {
  ActorRemoval,
  type ActorRemovalPorts,
  type ActorTombstone,
} from "../../base/removal/actor-removal.ts";
import { removeWorkspace } from "../../base/removal/removed-workspace.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext } from "../context.ts";
import type { ConversationState } from "../core/state.ts";
import { checkKeeper } from "../inbound/access.ts";
import type { Subscribers } from "../inbound/subscribers.ts";
import type { ConversationRuntime } from "../runtime.ts";
import { CONVERSATION_KEYS } from "../store/conversation-database.ts";

interface RemovalContext
  extends Omit<ActorRemovalPorts, "wakeup" | "kind" | "keys" | "tombstone" | "bury">,
    Pick<ActorContext, "send" | "conversation" | "workspace" | "expel"> {
  runtime: ConversationRuntime;
  subscribers: Pick<Subscribers, "end">;
}

/** Rows of one read of the journal. */
const SLICE = 64;

export class ConversationRemoval extends ActorRemoval<RemovalContext & ActorRemovalPorts> {
  protected override readonly first = "calls";

  constructor(context: RemovalContext, wakeup: Wakeup) {
    const { runtime } = context;
    super({
      ...context,
      wakeup,
      kind: "conversation",
      keys: CONVERSATION_KEYS,
      tombstone: () => runtime.store.tombstone(),
      bury: (tombstone) => runtime.store.bury(tombstone),
    });
  }

  /** Deletes the conversation. Throws `NOT_FOUND`, `FORBIDDEN` (DELETE-1). Resolves when the deletion is durable. */
  async remove(principal: Principal): Promise<void> {
    checkKeeper(this.ports.runtime.state.record, principal);
    await this.#remove(principal);
  }

  /** Deletes the conversation at the end of its retention (LASTING-1). Resolves when the deletion is durable. */
  expire(): Promise<void> {
    return this.#remove({ subject: "system" });
  }

  async #remove({ subject }: Pick<Principal, "subject">): Promise<void> {
    const { database, runtime, subscribers, expel } = this.ports;
    const { state } = runtime;
    const caller = { type: "user", userId: subject } as const;
    const { unit, sent } = database.transaction(() => {
      const begun = runtime.begin();
      if (state.status === "active") begun.stage([{ type: "conversation.complete", caller }]);
      const envelopes = [...this.#words(state), ...subscribers.end()];
      const { id, tenant, createdAt } = state.record;
      return { unit: begun, sent: [...envelopes, this.bury({ id, tenant, createdAt })] };
    });
    try {
      await unit.release();
    } finally {
      runtime.forget();
      expel();
    }
    await Promise.all(sent);
    void this.run();
  }

  /** Removes a deleted agent from the conversation (DELETE-4). Repeating it has no effect. */
  async removeAgent(agentId: string, principal: Principal): Promise<void> {
    const { runtime } = this.ports;
    if (!runtime.exists) return;
    const caller = { type: "user", userId: principal.subject } as const;
    await runtime.changes.changeParticipants({ type: "conversation.agent.deleted", caller, agentId });
  }

  /** Requests each agent to delete the memories that only the conversation supports. */
  #words({ record }: ConversationState): Promise<void>[] {
    const { id, tenant, agents } = record;
    return agents.map((agent) =>
      this.ports.send({
        operationId: newOperationId(),
        to: { kind: "agent", tenant, id: agent.id },
        type: MEMORY_SOURCES_ERASED,
        body: { conversationId: id },
      }),
    );
  }

  /** Deletes the conversations and the workspaces of runs that calls began (DELETE-3). */
  protected override async removeFirst({ tenant, id }: ActorTombstone): Promise<void> {
    const admin: Principal = { subject: "system", tenant, roles: ["admin"] };
    for (const began of this.#began(jurisdictionOf(id))) {
      if ("runId" in began) {
        const workspace = await this.ports.workspace?.(tenant, workspaceOf(began).id);
        if (workspace !== undefined) await removeWorkspace(workspace);
        continue;
      }
      const conversation = await this.ports.conversation(tenant, began.conversationId);
      const removed = await conversation.remove(admin);
      if (!removed.ok && removed.error.code !== "NOT_FOUND") unwrap(removed);
    }
  }

  /** Yields the conversations and the runs that calls have begun, by the entries of the journal. */
  *#began(own: Jurisdiction | undefined): Generator<{ conversationId: string } | { runId: string }> {
    const { store } = this.ports.runtime;
    for (let next = store.inherited.seq + 1; ; ) {
      const rows = store.journal.forward(next, SLICE);
      const last = rows.at(-1);
      if (last === undefined || last.seq + last.entries.length <= next) return;
      const called = rows.flatMap(({ entries }) =>
        entries.filter(({ type }) => type === "agent_call.started" || type === "workflow_run.started"),
      );
      for (const { turn: n = 0, item = 0 } of called) {
        const turn = store.turn(n);
        const operation = turn?.operations.find((one) => one.item === item);
        if (turn === null || operation === undefined) continue;
        const { agent, target } = operation;
        const id = operationId(turn, item);
        for (let attempt = 1; attempt <= operation.attempt; attempt++) {
          if (target === "workflow") yield { runId: calledRunId(id, attempt, own) };
          else if (agent !== undefined)
            yield { conversationId: calledConversationId(id, attempt, agent.jurisdiction) };
        }
      }
      next = last.seq + last.entries.length;
    }
  }
}
