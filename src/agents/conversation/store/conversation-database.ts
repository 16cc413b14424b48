/**
 * The storage of a conversation in its actor's database. Only this class writes it.
 *
 * COMMIT-1  A transition commits atomically in its caller's transaction: journal, turns, events and keys.
 * COMMIT-2  A commit writes one journal row, and one row per touched turn, per event and per key. It also writes one row per new text above
 *           4 KB, and per part of a turn above 8 KB. An ended turn is touched if an entry names it.
 * COMMIT-3  Waking reads the newest journal row, the record, the versions of each agent that joined later, and the active turns.
 * COMMIT-4  The state that a commit returns includes the parts outside each turn's row. After a rollback, the next commit on the earlier
 *           state writes them again.
 */
import { EventStore } from "../../../memory/session/event-store.ts";
import { LongText } from "../../../memory/session/long-text.ts";
import { EventAction, type SessionEvent } from "../../../memory/session/session-event.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict } from "../../../shared/errors.ts";
import { lastSeq } from "../../../shared/journal-row.ts";
import type { ActorTombstone } from "../../base/removal/actor-removal.ts";
import { VersionedRecord } from "../../base/storage/schema-upgrade.ts";
import { callerKey } from "../core/caller.ts";
import type { JournalRow } from "../core/journal-entry.ts";
import type { UserMessage } from "../core/signals.ts";
import {
  type BaseState,
  type ConversationAgent,
  type ConversationIdentity,
  type ConversationState,
  NEW_STATE,
  nextEvent,
  primaryAgent,
  type StoredParts,
} from "../core/state.ts";
import type { Transition } from "../core/transition.ts";
import type { Turn } from "../core/turn.ts";
import { isRecorded, type TurnRow, turnEvents, turnFromEvents } from "../core/turn-events.ts";
import { CONVERSATION_SCHEMA, RECORD_KEY } from "./conversation-tables.ts";
import { eraseEntry } from "./entry-eraser.ts";
import { CREATE_JOURNAL, Journal } from "./journal.ts";
import { SignalTable } from "./signal-queue.ts";
import type { StoredTurn } from "./turn-reading.ts";
import { type Amendment, CREATE_TURNS, TurnTable } from "./turns.ts";

/** The result of a commit: the new state, and the row of the journal. */
export interface Committed {
  state: ConversationState;
  row: JournalRow;
}

export class ConversationDatabase {
  readonly journal: Journal;
  readonly turns: TurnTable;
  readonly events: EventStore;
  readonly signals: SignalTable;
  readonly #record: VersionedRecord<StoredRecord | ActorTombstone>;
  #newestAt = 0;
  #hasSubscribers = false;

  constructor(
    private readonly database: SqlDatabase,
    private readonly keyValue: KeyValue,
  ) {
    const texts = new LongText(database);
    this.journal = new Journal(database);
    this.turns = new TurnTable(database, texts);
    this.events = new EventStore(database, texts);
    this.signals = new SignalTable(database);
    this.#record = new VersionedRecord(CONVERSATION_SCHEMA, { database, keyValue }, RECORD_KEY);
  }

  /** The time of the newest journal row that was read or written; 0 before. */
  get newestAt(): number {
    return this.#newestAt;
  }

  /** Reports whether actors have ever subscribed. A rollback may leave `true`. */
  get hasSubscribers(): boolean {
    return this.#hasSubscribers;
  }

  /** Notes in the record that actors have subscribed, in the current transaction. */
  noteSubscribers(): void {
    const stored = this.#record.get();
    if (stored === undefined || isTombstone(stored)) return;
    this.#hasSubscribers = true;
    if (stored.subscribed === undefined) this.#putRecord(stored);
  }

  #putRecord(record: StoredRecord): void {
    this.#record.put(this.#hasSubscribers ? { ...record, subscribed: true } : record);
  }

  /**
   * Returns the state as of the last commit; `null` before the conversation was created. Upgrades the storage of an older release first.
   * Throws `UNAVAILABLE` for storage of a newer release.
   */
  load(): ConversationState | null {
    const storedRecord = this.#record.get();
    if (storedRecord === undefined || isTombstone(storedRecord)) return null;
    const newest = this.journal.newest();
    if (newest === null) return null;
    const { subscribed = this.#hasSubscribers, ...withoutMark } = storedRecord;
    this.#hasSubscribers = subscribed;
    const record = this.#withChains(withoutMark);
    const { row, head } = newest;
    this.#newestAt = Math.max(this.#newestAt, row.at);
    const active = new Map<number, Turn>();
    const stored = new Map<number, StoredParts>();
    for (const n of head.active) {
      const found = this.turns.get(n);
      if (found === null) throw new Error(`The journal names turn ${n}, but its row is missing.`);
      active.set(n, this.#withContent(found.turn));
      if (found.stored !== undefined) stored.set(n, found.stored);
    }
    return { ...head, record, seq: lastSeq(row), active, stored };
  }

  /**
   * Creates the tables and the record, and appends `history` to the session of the primary agent. Throws `CONFLICT` if the
   * conversation exists.
   */
  create(
    record: ConversationIdentity,
    history: readonly SessionEvent[] = [],
    settings: Partial<Pick<BaseState, "order" | "budget" | "orchestration">> = {},
  ): ConversationState {
    return this.database.transaction(() => {
      if (this.checkNotDeleted() !== undefined) throw conflict("This conversation already exists.");
      this.createTables();
      this.#record.put(record);
      const row: JournalRow = { seq: 1, at: record.createdAt, entries: [{ type: "conversation.started" }] };
      const { id: sessionId } = primaryAgent(record);
      const sessions = history.length === 0 ? {} : { [sessionId]: history.length };
      const standing = { ...NEW_STATE, ...settings, sessions };
      this.journal.append(row, { ...standing, active: [] });
      this.events.append(sessionId, 0, history);
      return { ...standing, record, seq: lastSeq(row), active: new Map(), stored: new Map() };
    });
  }

  createTables(): void {
    this.database.run(CREATE_JOURNAL);
    this.database.run(CREATE_TURNS);
    this.events.createTable();
  }

  /** Writes the record of a conversation after its tables exist. */
  adopt(record: ConversationIdentity): void {
    const [, ...joined] = record.agents;
    for (const { id, chain } of joined) this.keyValue.put(chainKey(id), chain);
    this.#record.put(withoutChains(record));
  }

  /**
   * The number of the last entry that a fork or an import brought, and the time when it came, in milliseconds since the epoch; 0 for other
   * conversations. The conversations that calls opened before belong to the original (FORK-6).
   */
  get inherited(): Inherited {
    return this.keyValue.get<Inherited>(INHERITED) ?? { seq: 0, at: 0 };
  }

  /** Notes that all entries so far come from another conversation. */
  inherit(at: number): void {
    const newest = this.journal.newest();
    if (newest !== null) this.keyValue.put(INHERITED, { seq: lastSeq(newest.row), at });
  }

  /** Writes a transition made at `now` in the current transaction, without its envelopes. The mailbox writes these. */
  commit(transition: Transition, now: number): Committed {
    const { state: next, entries, touched, keys, notes, late, asks, membership } = transition;
    const { enqueued, dequeued } = transition;
    const row: JournalRow = { seq: next.seq + 1, at: now, entries: [...entries] };
    const active = [...next.active.keys()].sort((a, b) => a - b);
    const stored = new Map(next.stored);
    this.journal.append(row, { ...next, active });
    this.#newestAt = Math.max(this.#newestAt, now);
    for (const turn of touched.values()) {
      const written = this.turns.put(turn, next.stored.get(turn.n));
      if (turn.status === "active" && written.stored !== undefined) stored.set(turn.n, written.stored);
      else stored.delete(turn.n);
      if (!isRecorded(turn)) continue;
      this.events.append(turn.agentId, turn.events.from, turnEvents(turn), written.contents);
    }
    if (membership !== undefined) {
      for (const { id, chain } of membership) this.keyValue.put(chainKey(id), chain);
      this.#putRecord(withoutChains(next.record));
    }
    for (const erasure of transition.erased ?? [])
      eraseEntry({ ...this, database: this.database, keyValue: this.keyValue }, erasure);
    for (const [n, amendment] of amendmentsOf(transition, row)) this.turns.amend(n, amendment);
    if (transition.superseded !== undefined) this.#supersede(transition.superseded, next.record);
    for (const note of notes) this.events.append(note.sessionId, note.seq, [note]);
    this.signals.put(enqueued);
    for (const { n, signal } of enqueued) this.#noteWaiting(n, signal);
    if (dequeued !== undefined) this.signals.deleteBefore(dequeued);
    for (const operationId of late) this.keyValue.put(lateKey(operationId), 1);
    for (const { operationId, conversationId } of asks)
      this.keyValue.put(askKey(operationId), conversationId);
    for (const { caller, key, correlationId, turn } of keys)
      this.keyValue.put(seenKey(caller, key, correlationId), turn);
    return { state: { ...next, seq: lastSeq(row), stored }, row };
  }

  /** Marks a replaced turn, and deletes the summaries that may contain turns from it on. Their events stay. */
  #supersede(
    { n, by, sessions }: NonNullable<Transition["superseded"]>,
    { agents }: Pick<ConversationIdentity, "agents">,
  ): void {
    this.turns.amend(n, { replacedBy: by });
    for (const { id: sessionId } of agents) {
      const from = nextEvent(sessions, sessionId);
      const options = { from, actions: [EventAction.COMPACTION], limit: Number.MAX_SAFE_INTEGER };
      const ids = this.events.load(sessionId, options).map(({ id }) => id);
      this.events.delete(sessionId, ids);
    }
  }

  /** Returns the tombstone of a deleted conversation; `undefined` for other conversations. */
  tombstone(): ActorTombstone | undefined {
    const stored = this.#record.get();
    return stored !== undefined && isTombstone(stored) ? stored : undefined;
  }

  /** Returns the record if the conversation exists. Throws `CONFLICT` for a deleted conversation. */
  checkNotDeleted(): StoredRecord | undefined {
    const stored = this.#record.get();
    if (stored === undefined || !isTombstone(stored)) return stored;
    throw conflict("The conversation with this id was deleted. Use a new id.");
  }

  /** Replaces the record with a tombstone. The conversation then no longer exists. */
  bury(tombstone: ActorTombstone): void {
    this.#record.put(tombstone);
  }

  /** Reports whether a state equals the newest commit. */
  isCurrent({ seq }: Pick<ConversationState, "seq">): boolean {
    const newest = this.journal.newest();
    return newest !== null && lastSeq(newest.row) === seq;
  }

  /** Returns the turn that a caller's idempotency key started. Two callers may choose the same key. */
  turnOfKey(caller: Caller, key: string, correlationId?: string): number | undefined {
    const turn = this.keyValue.get<number>(seenKey(caller, key, correlationId));
    return turn === undefined || turn < 0 ? undefined : turn;
  }

  waitingMessage(
    { caller, id, correlationId }: UserMessage,
    { queue }: Pick<ConversationState, "queue">,
  ): UserMessage | undefined {
    if (id === undefined || queue === undefined) return undefined;
    const key = seenKey(caller, id, correlationId);
    const place = this.keyValue.get<number>(key);
    if (place === undefined || place >= 0) return undefined;
    const n = -1 - place;
    if (n < queue.first || n >= queue.next) return undefined;
    // A message that was refused leaves its place behind, and each queue counts from 0.
    const found = this.signals.get(n);
    const isSame = found.id !== undefined && seenKey(found.caller, found.id, found.correlationId) === key;
    return isSame ? found : undefined;
  }

  /** Stores the queue place of a message as a negative number, in the slot for its turn's number. */
  #noteWaiting(n: number, { caller, id, correlationId }: UserMessage): void {
    if (id !== undefined) this.keyValue.put(seenKey(caller, id, correlationId), -1 - n);
  }

  hasLateResult(operationId: string): boolean {
    return this.keyValue.get(lateKey(operationId)) !== undefined;
  }

  /** Returns the called conversation that requested the approval with this id; `undefined` for other ids. */
  askingConversation(operationId: string): string | undefined {
    return this.keyValue.get<string>(askKey(operationId));
  }

  /** Returns the operations that a caller answered with a key; empty for a new key. */
  answeredWith(caller: Caller, key: string): readonly string[] {
    return this.keyValue.get<string[]>(answerKey(caller, key)) ?? [];
  }

  noteAnswered(caller: Caller, key: string, operationIds: readonly string[]): void {
    this.keyValue.put(answerKey(caller, key), operationIds);
  }

  turn(n: number): Turn | null {
    const found = this.turns.get(n);
    return found === null ? null : this.#withContent(found.turn);
  }

  /** Adds the versions of the agents that joined later. */
  #withChains({ agents, ...record }: Omit<StoredRecord, "subscribed">): ConversationIdentity {
    const [primary, ...joined] = agents;
    const others = joined.map(
      ({ id, leased, projectIds, since, deleted, chain = this.keyValue.get<VersionChain>(chainKey(id)) }) => {
        if (chain === undefined) throw new Error(`The agent "${id}" joined, but its versions are missing.`);
        return { id, ...defined({ leased, projectIds, since, deleted }), chain };
      },
    );
    return { ...record, agents: [primary, ...others] };
  }

  #withContent(turn: StoredTurn): Turn {
    return turn.events === undefined ? turn : turnFromEvents(turn, this.#eventsOf(turn));
  }

  #eventsOf({ agentId, events }: TurnRow): SessionEvent[] {
    const { from, count } = events;
    const options = { before: from + count, limit: count, maxBytes: Number.MAX_SAFE_INTEGER };
    return this.events.load(agentId, options).filter((event) => event.seq >= from);
  }
}

function amendmentsOf(
  { state: { active }, unextracted, extractions }: Transition,
  { seq, entries }: JournalRow,
): Map<number, Amendment> {
  const amendments = new Map<number, Amendment>();
  const add = (n: number, amendment: Amendment) => amendments.set(n, { ...amendments.get(n), ...amendment });
  const ends = new Set(entries.flatMap(({ type, turn }) => (ENDS.has(type) ? [turn] : [])));
  for (const [index, { turn }] of entries.entries()) {
    if (turn === undefined || active.has(turn) || ends.has(turn)) continue;
    add(turn, { lateEntries: [...(amendments.get(turn)?.lateEntries ?? []), seq + index] });
  }
  for (const n of unextracted) add(n, { issues: { memoryExtractionFailed: true } });
  for (const { n, attempt } of extractions) add(n, { hooks: { extractionAttempt: attempt } });
  return amendments;
}

const ENDS: ReadonlySet<string> = new Set(["turn.completed", "turn.failed"]);

/** The stored record. The versions of agents that joined later are separate values, because a value has at most 2 MB. */
type StoredRecord = Omit<ConversationIdentity, "agents"> & {
  agents: readonly [
    ConversationAgent,
    ...(Omit<ConversationAgent, "chain"> & Partial<Pick<ConversationAgent, "chain">>)[],
  ];
  /** Actors have subscribed (SUBSCRIBER-6). */
  subscribed?: true;
};

const INHERITED = "inherited";

/** The past that a fork or an import brought. */
type Inherited = { seq: number; at: number };

function isTombstone(stored: StoredRecord | ActorTombstone): stored is ActorTombstone {
  return "deletedAt" in stored;
}

function withoutChains({ agents: [primary, ...joined], ...record }: ConversationIdentity): StoredRecord {
  return {
    ...record,
    agents: [primary, ...joined.map(({ chain: _, ...agent }) => agent)],
  };
}

function chainKey(agentId: string): string {
  return `chain:${agentId}`;
}

function lateKey(operationId: string): string {
  return `late:${operationId}`;
}

function askKey(operationId: string): string {
  return `ask:${operationId}`;
}

function answerKey(...answer: [caller: Caller, key: string]): string {
  return `answer:${callerKey(...answer)}`;
}

function seenKey(...signal: Parameters<typeof callerKey>): string {
  return `seen:${callerKey(...signal)}`;
}
