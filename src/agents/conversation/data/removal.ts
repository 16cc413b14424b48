/**
 * The deletion of a conversation. One commit stops its work and replaces its record with a tombstone. It also requests its agents to delete
 * the memories that only this conversation supports. Afterwards all entry points answer that the conversation does not exist. A job removes
 * the other data.
 *
 * DELETE-1  Principals that may end a conversation, and operators, may delete it. Other principals get `FORBIDDEN`, or `NOT_FOUND` without
 *           read access.
 * DELETE-2  A deletion is durable when it is acknowledged, also during outages of other services. Afterwards reads, messages, results and
 *           connections get `NOT_FOUND`, and open connections and streams are closed. Its id is never reused.
 * DELETE-3  The conversations that its calls of agents opened are deleted with it. So are the workspaces of the runs that its calls and its
 *           hooks started.
 * DELETE-4  A deleted agent leaves its conversations. A conversation without another agent fails (LIFE-5), and stays readable.
 */
import { calledConversationId, calledRunId, operationId } from "../../../protocol/ids.ts";
import type { EntryType } from "../../../protocol/journal.ts";
import { MEMORY_SOURCES_ERASED } from "../../../protocol/memory.ts";
import { workspaceOf } from "../../../protocol/workspace.ts";
import { unavailable, unwrap } from "../../../shared/errors.ts";
import { isJsonObject } from "../../../shared/json.ts";
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
import type { JournalRow } from "../core/journal-entry.ts";
import type { ConversationState } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import { checkKeeper } from "../inbound/access.ts";
import type { Subscribers } from "../inbound/subscribers.ts";
import type { ConversationRuntime } from "../runtime.ts";
import { CONVERSATION_KEYS } from "../store/conversation-tables.ts";

interface RemovalContext
  extends Omit<ActorRemovalPorts, "wakeup" | "kind" | "keys" | "tombstone" | "bury">,
    Pick<ActorContext, "send" | "conversation" | "workspace" | "expel"> {
  runtime: ConversationRuntime;
  subscribers: Pick<Subscribers, "end">;
}

/** Rows of the journal in one piece. */
const SLICE = 64;
/** The place of the first slice with failures. */
const FAILED = "failed calls";
/** The entries of calls and hooks that can begin a conversation or a run. */
const STARTS: ReadonlySet<EntryType> = new Set([
  ...(["agent_call.started", "workflow_run.started"] as const),
  ...(["context_assembly.started", "memory_extraction.started"] as const),
]);

/** What a call or a hook has begun. */
type Began = { conversationId: string } | { runId: string };

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

  /**
   * Deletes the conversations and the workspaces that calls and hooks began (DELETE-3), in one slice of the journal. Returns the next entry. Slices
   * with failures are repeated after the others.
   */
  protected override async removeFirst(
    { tenant, id }: ActorTombstone,
    from = this.ports.runtime.store.inherited.seq + 1,
  ): Promise<number | undefined> {
    const rows = this.ports.runtime.store.journal.forward(from, SLICE);
    const last = rows.at(-1);
    if (last === undefined || last.seq + last.entries.length <= from) return this.#again();
    const began = [...this.#began(rows, jurisdictionOf(id))];
    const results = await Promise.allSettled(began.map((one) => this.#removeBegun(tenant, one)));
    const failed = results.filter((one) => one.status === "rejected");
    for (const { reason } of failed.slice(0, 1)) console.error("The deletion of an actor failed:", reason);
    const { [FAILED]: first = from, ...places } = this.ports.tombstone()?.places ?? {};
    if (failed.length > 0) this.#putPlaces({ ...places, [FAILED]: first });
    return rows.length < SLICE ? this.#again() : last.seq + last.entries.length;
  }

  /** Lets the step begin anew at the first slice with failures. Throws in this case. */
  #again(): undefined {
    const { [FAILED]: failed, ...places } = this.ports.tombstone()?.places ?? {};
    if (failed === undefined) return;
    this.#putPlaces({ ...places, [this.first]: failed });
    throw unavailable("Conversations or workspaces have not answered.", {
      retriable: true,
    });
  }

  #putPlaces(places: ActorTombstone["places"] & object): void {
    const tombstone = this.ports.tombstone();
    if (tombstone !== undefined) this.ports.bury({ ...tombstone, places });
  }

  async #removeBegun(tenant: string, began: Began): Promise<void> {
    if ("runId" in began) {
      const workspace = await this.ports.workspace?.(tenant, workspaceOf(began).id);
      if (workspace !== undefined) await removeWorkspace(workspace);
      return;
    }
    const conversation = await this.ports.conversation(tenant, began.conversationId);
    const removed = await conversation.remove({ subject: "system", tenant, roles: ["admin"] });
    if (!removed.ok && removed.error.code !== "NOT_FOUND") unwrap(removed);
  }

  /** Yields the conversations and the runs that calls and hooks have begun, by the entries of the journal. */
  *#began(rows: readonly JournalRow[], own: Jurisdiction | undefined): Generator<Began> {
    const { store } = this.ports.runtime;
    for (const { type, turn: n = 0, item = 0, data } of rows.flatMap(({ entries }) => entries)) {
      if (!STARTS.has(type)) continue;
      const turn = store.turn(n);
      if (turn === null) continue;
      const id = operationId(turn, item);
      const operation = turn.operations.find((one) => one.item === item);
      const { agent, target, attempt = attemptsOfHook(turn, item) } = operation ?? {};
      // Hooks that are workflows name their run.
      const isRun = target === "workflow" || (isJsonObject(data) && "runId" in data);
      for (let one = 1; one <= attempt; one++) {
        if (isRun) yield { runId: calledRunId(id, one, own) };
        else if (agent !== undefined)
          yield { conversationId: calledConversationId(id, one, agent.jurisdiction) };
      }
    }
  }
}

function attemptsOfHook({ hooks = {} }: Turn, item: number): number {
  const { assembly, attempt, earlier = [], extraction, extractionAttempt } = hooks;
  const all = [...earlier, [assembly, attempt] as const, [extraction, extractionAttempt] as const];
  return all.find(([one]) => one === item)?.[1] ?? 1;
}
