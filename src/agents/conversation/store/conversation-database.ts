/**
 * The storage of a conversation in its actor's database. Only this class writes it.
 *
 * COMMIT-1  A transition is committed in one transaction, its caller's: journal, turns, events and keys, or none of them.
 * COMMIT-2  A commit writes one row per fact: one journal row, one row per turn touched, one per event, one per key.
 * COMMIT-3  Waking reads the newest journal row, the record, and the rows of the active turns.
 */
import { EventStore } from "../../../memory/session/event-store.ts";
import { LongText } from "../../../memory/session/long-text.ts";
import type { SessionEvent } from "../../../memory/session/types.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { Caller } from "../../../protocol/views.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { VersionedRecord } from "../../base/storage/schema-upgrade.ts";
import { callerKey } from "../core/caller.ts";
import { type JournalRow, lastSeq } from "../core/journal-entry.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  NEW_STANDING,
  primaryAgent,
  type Turn,
} from "../core/state.ts";
import type { Transition } from "../core/transition.ts";
import { type TurnRow, turnEvents, turnFromEvents } from "../core/turn-events.ts";
import { CREATE_JOURNAL, Journal } from "./journal.ts";
import { CONVERSATION_SCHEMA, RECORD_KEY } from "./schema.ts";
import { CREATE_TURNS, TurnTable } from "./turns.ts";

/** The result of a commit: the new state, and the row of the journal. */
export interface Committed {
  state: ConversationState;
  row: JournalRow;
}

export class ConversationDatabase {
  readonly journal: Journal;
  readonly turns: TurnTable;
  readonly events: EventStore;
  readonly #record: VersionedRecord<ConversationIdentity>;

  constructor(
    private readonly database: SqlDatabase,
    private readonly keyValue: KeyValue,
  ) {
    const texts = new LongText(database);
    this.journal = new Journal(database);
    this.turns = new TurnTable(database, texts);
    this.events = new EventStore(database, texts);
    this.#record = new VersionedRecord(CONVERSATION_SCHEMA, { database, keyValue }, RECORD_KEY);
  }

  /**
   * Returns the state as of the last commit; `null` before the conversation was created. Upgrades the storage of an older
   * release first; throws `UNAVAILABLE` for the storage of a newer one.
   */
  load(): ConversationState | null {
    const record = this.#record.get();
    const newest = record === undefined ? null : this.journal.newest();
    if (record === undefined || newest === null) return null;
    const { row, head } = newest;
    const active = new Map<number, Turn>();
    for (const n of head.active) {
      const turn = this.turn(n);
      if (turn === null) throw new Error(`The journal names turn ${n}, but its row is missing.`);
      active.set(n, turn);
    }
    return { ...head, record, seq: lastSeq(row), active };
  }

  /**
   * Creates the tables and the record, and appends `history` to the session of the primary agent. Throws `CONFLICT` if the
   * conversation exists.
   */
  create(record: ConversationIdentity, history: readonly SessionEvent[] = []): ConversationState {
    return this.database.transaction(() => {
      if (this.#record.get() !== undefined) {
        throw new DramatisError("CONFLICT", "This conversation exists already.");
      }
      this.database.run(CREATE_JOURNAL);
      this.database.run(CREATE_TURNS);
      this.events.createTable();
      this.#record.put(record);
      const row: JournalRow = { seq: 1, at: record.createdAt, entries: [{ type: "conversation.started" }] };
      const { id: sessionId } = primaryAgent(record);
      const sessions = history.length === 0 ? {} : { [sessionId]: history.length };
      const standing = { ...NEW_STANDING, sessions };
      this.journal.append(row, { ...standing, active: [] });
      this.events.append(sessionId, 0, history);
      return { ...standing, record, seq: lastSeq(row), active: new Map() };
    });
  }

  /** Writes a transition made at `now` in the current transaction, but for its envelopes, which the mailbox writes. */
  commit(transition: Transition, now: number): Committed {
    const { state: next, entries, touched, keys } = transition;
    const row: JournalRow = { seq: next.seq + 1, at: now, entries: [...entries] };
    const active = [...next.active.keys()].sort((a, b) => a - b);
    this.journal.append(row, { ...next, active });
    for (const turn of touched.values()) {
      this.turns.put(turn);
      if (turn.events !== undefined) this.events.append(turn.agentId, turn.events.from, turnEvents(turn));
    }
    for (const { caller, key, turn } of keys) this.keyValue.put(seenKey(caller, key), turn);
    return { state: { ...next, seq: lastSeq(row) }, row };
  }

  /** Returns the turn that a caller's idempotency key started. Two callers may choose the same key. */
  turnOfKey(caller: Caller, key: string): number | undefined {
    return this.keyValue.get<number>(seenKey(caller, key));
  }

  /** Returns a turn with all of its content; `null` for an unknown number. */
  turn(n: number): Turn | null {
    const stored = this.turns.get(n);
    return stored?.status === "completed" ? turnFromEvents(stored, this.#eventsOf(stored)) : stored;
  }

  #eventsOf({ agentId, events }: TurnRow): SessionEvent[] {
    if (events === undefined) return [];
    const { from, count } = events;
    const options = { before: from + count, limit: count, maxBytes: Number.MAX_SAFE_INTEGER };
    return this.events.load(agentId, options).filter((event) => event.seq >= from);
  }
}

function seenKey(caller: Caller, key: string): string {
  return `seen:${callerKey(caller, key)}`;
}
