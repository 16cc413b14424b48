/**
 * Reads a conversation: pages of messages, turns and journal, the snapshot, and the replay of its frames.
 *
 * QUERY-1  Each read has a bounded number of rows and a bounded length, for any history.
 * QUERY-2  Messages come in the order of the journal.
 */
import { z } from "zod";
import type {
  JournalEntryView,
  MessageView,
  TurnSummary,
  TurnView,
} from "../../../protocol/conversation-schemas.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { MAX_TURN_NUMBER, parseItemId, type TurnKey, turnId } from "../../../protocol/ids.ts";
import { ENTRY_TYPES, type JournalPageOptions } from "../../../protocol/journal.ts";
import type { TurnRecording } from "../../../protocol/recording.ts";
import type { PastTurns, PastTurnsRequest } from "../../../protocol/tool-memory.ts";
import type { TracePart } from "../../../protocol/trace.ts";
import type { OperationView, Snapshot } from "../../../protocol/views.ts";
import { notFound } from "../../../shared/errors.ts";
import { lastSeq } from "../../../shared/journal-row.ts";
import { type Page, type PageOptions, pageOptionsSchema } from "../../../shared/page.ts";
import { validate } from "../../../shared/validation.ts";
import { lengthOf } from "../core/content-size.ts";
import { framesOf } from "../core/frames.ts";
import type { JournalEntry } from "../core/journal-entry.ts";
import type { ReplayOptions } from "../core/replay/recording.ts";
import type { ConversationState } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";
import type { TurnFacts } from "../store/turn-reading.ts";
import { entriesAround } from "./journal-entries.ts";
import { readPastTurns } from "./past-turns.ts";
import { readTrace, type TraceOptions } from "./trace-reader.ts";
import { newRecentTurns, requireTurn, TurnReader } from "./turn-reader.ts";
import { recordTurn } from "./turn-recorder.ts";
import {
  answeredTurnView,
  conversationView,
  isTranscriptEntry,
  journalEntryView,
  messageView,
  operationView,
  turnSummaryView,
  turnView,
} from "./views.ts";

/** Journal rows read at a time. */
const SLICE = 64;
/** Earlier versions of a turn in its view, and later versions. */
const MAX_VERSIONS = 32;
const SNAPSHOT_MESSAGES = 50;
/** Length of the turns in a snapshot. The same limit applies to its tool results, as JSON. */
const SNAPSHOT_LENGTH = 256 * 1024;
/** Entries that a page reads, if it has a filter. */
const MAX_FILTERED = 5_000;
/** Length of the turns in one slice of a replay. */
const REPLAY_LENGTH = 128 * 1024;

/** The options of a page. The cursor is the number of a journal entry or of a turn. */
const journalPageSchema = pageOptionsSchema((cursor) => /^\d{1,15}$/.test(cursor));

const typesSchema = z.array(z.enum(ENTRY_TYPES)).optional();

export class ConversationQueries {
  #recent = newRecentTurns();
  /** The turn of the newest view. */
  #viewed: TurnKey | undefined;

  constructor(private readonly store: ConversationDatabase) {}

  /** Clears the cached turns. */
  forget(): void {
    this.#recent = newRecentTurns();
  }

  messages(
    state: ConversationState,
    options: PageOptions = {},
    reader = this.#reader(state),
  ): Page<MessageView> {
    return this.#page(options, state, (entry, _seq, at) => {
      if (!isTranscriptEntry(entry) || entry.turn === undefined) return null;
      if (!reader.admits(entry.turn)) return "full";
      const turn = reader.take(entry.turn);
      return turn === undefined ? null : messageView(turn, entry.item ?? 0, at);
    });
  }

  /** Returns past turns of an agent. Throws `NOT_FOUND` for unknown turns. */
  pastTurns(state: ConversationState, { turnId: id, before, ...request }: PastTurnsRequest): PastTurns {
    const asking = this.requireTurn(state, id);
    const n = before === undefined ? asking.n : Math.min(asking.n, this.requireTurn(state, before).n);
    const { turns } = this.store;
    const list = (from: number, limit: number) => turns.list(from, "desc", limit);
    return readPastTurns({ list, turn: (of) => this.store.turn(of) }, n, request);
  }

  journal(state: ConversationState, given: JournalPageOptions = {}): Page<JournalEntryView> {
    const { types: wanted, turn: id, ...options } = given;
    const types = validate(typesSchema, wanted, "/types");
    const turn = id === undefined ? undefined : requireTurn(id, (n) => this.#facts(state, n));
    const turns = new Map<number, TurnFacts | undefined>(turn && [[turn.n, turn]]);
    let seen = 0;
    const pick = (entry: JournalEntry, seq: number, at: number) => {
      if (seen === MAX_FILTERED && (types ?? turn) !== undefined) return "full";
      seen += 1;
      const n = entry.turn;
      if (types?.includes(entry.type) === false || (turn !== undefined && n !== turn.n)) return null;
      if (n === undefined) return journalEntryView(entry, seq, at, undefined);
      if (!turns.has(n)) turns.set(n, this.#facts(state, n));
      return journalEntryView(entry, seq, at, turns.get(n));
    };
    return this.#page(options, state, pick, turn);
  }

  turns(options: PageOptions = {}): Page<TurnSummary> {
    const { limit, order, cursor } = validate(journalPageSchema, options);
    const start = cursor === undefined ? (order === "asc" ? 0 : MAX_TURN_NUMBER + 1) : Number(cursor);
    const { turns, more } = this.store.turns.list(start, order, limit);
    const last = turns.at(-1);
    return {
      items: turns.map(turnSummaryView),
      ...(more && last !== undefined ? { nextCursor: String(last.n) } : {}),
    };
  }

  turn(state: ConversationState, id: string): TurnView {
    return this.view(state, this.requireTurn(state, id));
  }

  /** Returns the conversation's part of a turn's trace; without an id, of its first turn's trace. */
  trace(state: ConversationState, id: string | undefined, options: TraceOptions): TracePart {
    const read = (n: number) => state.active.get(n) ?? this.store.turn(n) ?? undefined;
    const turn = id === undefined ? read(1) : this.requireTurn(state, id);
    if (turn === undefined) throw notFound("This conversation has no turns.");
    const after = (n: number, limit: number) => this.store.turns.list(n, "asc", limit);
    return readTrace(state, turn, { read, after }, options);
  }

  /** Returns the recording of an ended turn. Throws `CONFLICT` for an active or erased turn. */
  recording(state: ConversationState, id: string, options: ReplayOptions): TurnRecording {
    return recordTurn(state.record, this.requireTurn(state, id), this.store.journal, options);
  }

  view(state: ConversationState, turn: Turn): TurnView {
    const before = this.#viewed?.n === turn.n - 1 ? this.#viewed : this.#facts(state, turn.n - 1);
    this.#viewed = { n: turn.n, stem: turn.stem };
    const view = turnView(state.record, turn, before === undefined ? undefined : turnId(before));
    const versions = this.#versions(state, turn);
    return versions.length === 1 ? view : { ...view, versions };
  }

  /** Returns the ids of a turn's versions: the turns that it replaced, itself, and the turns that replaced it. */
  #versions(state: ConversationState, turn: TurnFacts): string[] {
    const follow = (next: (of: TurnFacts) => string | undefined): string[] => {
      const found: string[] = [];
      for (let id = next(turn); id !== undefined && found.length < MAX_VERSIONS; ) {
        found.push(id);
        const other = this.#facts(state, parseItemId(id)?.n ?? 0);
        id = other && next(other);
      }
      return found;
    };
    const earlier = follow(({ regenerates, edits }) => regenerates ?? edits).reverse();
    return [...earlier, turnId(turn), ...follow(({ replacedBy }) => replacedBy)];
  }

  /** Throws `NOT_FOUND` for an id that names no turn of this conversation. */
  requireTurn(state: ConversationState, id: string): Turn {
    return requireTurn(id, (n) => state.active.get(n) ?? this.store.turn(n));
  }

  /** Returns the snapshot, with at most `limit` units of messages, and as much of results. */
  snapshot(state: ConversationState, partials: Snapshot["partials"], limit = SNAPSHOT_LENGTH): Snapshot {
    const reader = this.#reader(state, limit);
    const { items } = this.messages(state, { limit: SNAPSHOT_MESSAGES, order: "desc" }, reader);
    const numbers = new Set([
      ...state.active.keys(),
      ...items.map(({ turnId }) => parseItemId(turnId)?.n ?? 0),
    ]);
    const turns = [...numbers].sort((a, b) => a - b).flatMap((n) => reader.take(n) ?? []);
    return {
      conversation: conversationView(state),
      turns: turns.map((turn) => answeredTurnView(state.record, turn)),
      messages: items.reverse(),
      operations: operationsWithin(state.record, turns, limit),
      partials,
    };
  }

  /**
   * Returns a slice of the frames after entry `after`, of turns with about `limit` units, and the last entry of the slice;
   * `done` if that is the newest.
   */
  replay(
    state: ConversationState,
    after: number,
    limit = Infinity,
  ): { frames: Frame[]; upTo: number; done: boolean } {
    const reader = this.#reader(state, Math.min(limit, REPLAY_LENGTH));
    const frames: Frame[] = [];
    let upTo: number | undefined;
    for (const row of this.store.journal.along(after + 1, SLICE)) {
      if (!row.entries.every(({ turn }) => turn === undefined || reader.admits(turn))) break;
      frames.push(...framesOf(row, after, state.record, reader.take));
      upTo = lastSeq(row);
    }
    upTo ??= state.seq;
    return { frames, upTo, done: upTo >= state.seq };
  }

  #reader(state: ConversationState, limit?: number): TurnReader {
    return new TurnReader(state, this.store, this.#recent, limit);
  }

  /** Returns a turn without reading its content. */
  #facts(state: ConversationState, n: number): TurnFacts | undefined {
    return n === 0 ? undefined : (state.active.get(n) ?? this.store.turns.facts(n) ?? undefined);
  }

  /**
   * Returns a page of journal entries, or of the entries around a turn. `pick` gives an item, `null` to leave an entry out, or `full` to
   * end the page.
   */
  #page<Item>(
    options: PageOptions,
    state: ConversationState,
    pick: (entry: JournalEntry, seq: number, at: number) => Item | null | "full",
    turn?: TurnFacts,
  ): Page<Item> {
    const { limit, order, cursor } = validate(journalPageSchema, options);
    const after = cursor === undefined ? undefined : Number(cursor);
    const items: Item[] = [];
    let position = after;
    const entries = entriesAround(this.store.journal, turn, order, after, state.seq);
    for (const { entry, seq, at } of entries) {
      const item = pick(entry, seq, at);
      if (item === "full") return { items, nextCursor: String(position) };
      if (item !== null) {
        if (items.length === limit) return { items, nextCursor: String(position) };
        items.push(item);
      }
      position = seq;
    }
    return { items };
  }
}

/**
 * Returns the operations of turns, with the newest results that fit. A turn's own view has all results. Calls that a turn took over are
 * in the turn that made them (REPLACE-8).
 */
function operationsWithin(
  record: ConversationState["record"],
  turns: readonly Turn[],
  limit: number,
): OperationView[] {
  let left = limit;
  const views = turns
    .flatMap((turn) =>
      turn.operations
        .filter(({ reply }) => reply >= (turn.taken ?? 0))
        .map((operation) => ({ turn, operation })),
    )
    .reverse()
    .map(({ turn, operation }) => {
      left -= lengthOf(operation.result);
      const { result, ...view } = operationView(record, turn, operation);
      return left < 0 || result === undefined ? view : { ...view, result };
    });
  return views.reverse();
}
