/**
 * The deletion of a conversation. One commit stops its work, puts a tombstone in the place of its record, and sends its agents word that
 * what they learned from it alone goes. From then on there is no such conversation, at any entrance. The rest is removed by a job.
 *
 * DELETE-1  Whoever may end a conversation may delete it, and operators too. To others it is not there.
 * DELETE-2  A deletion is durable when it is acknowledged, whatever else is down. From then on reads, messages, results and connections
 *           get `NOT_FOUND`, open connections and streams are closed, and its id never refers to another conversation.
 * DELETE-3  The conversations that its calls of agents opened are deleted with it.
 * DELETE-4  Of a conversation whose first agent is deleted: it is deleted too where that was its only agent, and ends otherwise. Any other
 *           agent leaves.
 */
import type { Clock } from "../../ports/clock.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { ConversationApi } from "../../protocol/conversation-api.ts";
import type { NewEnvelope } from "../../protocol/envelope.ts";
import { calledConversationId, operationId } from "../../protocol/ids.ts";
import { MEMORY_SOURCES_ERASED } from "../../protocol/memory.ts";
import { unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { newOperationId } from "../base/mailbox/operation-id.ts";
import { deleteValues, dropOwnTables } from "../base/removal/own-tables.ts";
import type { OwnedStore } from "../base/removal/owned-stores.ts";
import { Removal, type RemovalStep } from "../base/removal/removal.ts";
import type { Wakeup } from "../base/timers/wakeups.ts";
import { type ConversationState, primaryAgent, takesPart } from "./core/state.ts";
import { checkKeeper } from "./door/access.ts";
import type { ConversationRuntime } from "./runtime.ts";
import { CONVERSATION_KEYS, type Tombstone } from "./store/conversation-database.ts";

export interface ConversationRemovalPorts {
  clock: Clock;
  database: ActorDatabase;
  keyValue: KeyValue;
  runtime: ConversationRuntime;
  wakeup: Wakeup;
  /** Returns the stores outside of the actor. */
  stores(): readonly OwnedStore[];
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  /** As `Mailbox.forget`. */
  forgetMail(): boolean;
  /** Finds the actor of another conversation of the tenant. */
  conversation(tenant: string, id: string): Promise<Pick<ConversationApi, "remove">>;
  /** Ends all connections and streams. */
  expel(): void;
}

/** Rows of the journal that are read at once. */
const SLICE = 64;
/** Time after which what was written to a store when the deletion began is there, in milliseconds. */
const LATE_WRITE_MS = 60_000;
const MAIL_PAUSE_MS = 60_000;

export class ConversationRemoval {
  readonly #removal: Removal;

  constructor(private readonly ports: ConversationRemovalPorts) {
    this.#removal = new Removal({
      clock: ports.clock,
      wakeup: ports.wakeup,
      left: () => this.#left(),
      done: (name) => this.#done(name),
      steps: () => this.#steps(),
    });
  }

  /** Reports whether the conversation was deleted. */
  get isDeleted(): boolean {
    return this.#tombstone !== undefined;
  }

  /** Goes on with what a crash interrupted. Call it when an actor without a conversation wakes. */
  resume(): void {
    if (this.#left().length > 0) void this.#removal.run();
  }

  /** As `Removal.wake`. */
  wake(): number | null {
    return this.#removal.wake();
  }

  /** Deletes the conversation. Throws `NOT_FOUND`, `FORBIDDEN` (DELETE-1). Resolves when the deletion is durable. */
  async remove(principal: Principal): Promise<void> {
    const { state } = this.ports.runtime;
    checkKeeper(state.record, principal);
    await this.#delete(principal.subject);
  }

  /** Takes a deleted agent out of the conversation (DELETE-4). Repeating it changes nothing. */
  async removeAgent(agentId: string, principal: Principal): Promise<void> {
    const { runtime } = this.ports;
    if (!runtime.exists) return;
    const { record, status } = runtime.state;
    const caller = { type: "user", userId: principal.subject } as const;
    const others = record.participants.some(({ type, id }) => type === "agent" && id !== agentId);
    const isFirst = primaryAgent(record).id === agentId;
    if (isFirst && !others) await this.#delete(principal.subject);
    else if (status !== "active") return;
    else if (isFirst) await runtime.changes.end({ caller, reason: "Its first agent was deleted." });
    else if (takesPart(record, { type: "agent", id: agentId }))
      await runtime.changes.changeParticipants({
        type: "conversation.participant.remove",
        caller,
        participant: { type: "agent", id: agentId },
      });
  }

  async #delete(userId: string): Promise<void> {
    const { database, runtime, expel } = this.ports;
    const { state } = runtime;
    const { unit, sent } = database.transaction(() => {
      const begun = runtime.begin();
      if (state.status === "active")
        begun.stage([{ type: "conversation.complete", caller: { type: "user", userId } }]);
      const envelopes = this.#words(state);
      runtime.store.bury(this.#newTombstone(state));
      return { unit: begun, sent: [...envelopes, this.#removal.note()] };
    });
    try {
      await unit.release();
    } finally {
      runtime.forget();
      expel();
    }
    await Promise.all(sent);
    void this.#removal.run();
  }

  /** Sends each agent word that what it learned from the conversation alone goes. */
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

  #newTombstone({ record }: ConversationState): Tombstone {
    const { id, tenant, createdAt } = record;
    const left = this.#steps().map(({ name }) => name);
    return { id, tenant, createdAt, deletedAt: this.ports.clock.now(), left };
  }

  get #tombstone(): Tombstone | undefined {
    return this.ports.runtime.store.tombstone();
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
    this.ports.runtime.store.bury({ ...tombstone, left: tombstone.left.filter((step) => step !== name) });
  }

  #steps(): RemovalStep[] {
    const stores = this.ports.stores();
    return [
      { name: "calls", run: () => this.#removeCalls() },
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
    for (const empty of empties) await empty({ kind: "conversation", tenant, id, createdAt });
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
    deleteValues({ database, keyValue }, CONVERSATION_KEYS);
  }

  /** Deletes the conversations that calls of agents opened (DELETE-3). */
  async #removeCalls(): Promise<undefined> {
    const tombstone = this.#tombstone;
    if (tombstone === undefined) return;
    const { tenant } = tombstone;
    const admin: Principal = { subject: "system", tenant, roles: ["admin"] };
    for (const id of this.#opened()) {
      const conversation = await this.ports.conversation(tenant, id);
      const removed = await conversation.remove(admin);
      if (!removed.ok && removed.error.code !== "NOT_FOUND") unwrap(removed);
    }
  }

  /** Yields the ids of the conversations that calls have opened, by the entries of the journal. */
  *#opened(): Generator<string> {
    const { store } = this.ports.runtime;
    for (let next = 1; ; ) {
      const rows = store.journal.forward(next, SLICE);
      const last = rows.at(-1);
      if (last === undefined || last.seq + last.entries.length <= next) return;
      const called = rows.flatMap(({ entries }) =>
        entries.filter(({ type }) => type === "agent_call.started"),
      );
      for (const { turn: n = 0, item = 0 } of called) {
        const turn = store.turn(n);
        const operation = turn?.operations.find((one) => one.item === item);
        if (turn === null || operation?.agent === undefined) continue;
        const { jurisdiction } = operation.agent;
        for (let attempt = 1; attempt <= operation.attempt; attempt++)
          yield calledConversationId(operationId(turn, item), attempt, jurisdiction);
      }
      next = last.seq + last.entries.length;
    }
  }
}
