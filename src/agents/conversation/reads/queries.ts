/**
 * Reads of a conversation: pages of messages, turns and journal, the snapshot, and the replay of its frames.
 *
 * QUERY-1  Every read is bounded by rows and by content, whatever the history.
 * QUERY-2  Messages come in the order of the journal.
 */

import type { Frame } from "../../../protocol/frames.ts";
import type {
  JournalEntryView,
  MessageView,
  OperationView,
  Snapshot,
  TurnSummary,
  TurnView,
} from "../../../protocol/views.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Page, PageOptions } from "../../../shared/page.ts";
import { framesOf } from "../core/frames.ts";
import { MAX_TURN_NUMBER, parseItemId, turnId } from "../core/ids.ts";
import type { JournalEntry, JournalRow } from "../core/journal-entry.ts";
import { resultLength } from "../core/planning/content-size.ts";
import type { ConversationState, Turn } from "../core/state.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";
import { lastSeq } from "../store/journal.ts";
import type { StoredTurn } from "../store/turns.ts";
import { TurnReader } from "./turn-reader.ts";
import {
  answeredTurnView,
  conversationView,
  isTranscriptEntry,
  journalEntryView,
  messageView,
  operationView,
  type TurnFacts,
  turnSummaryView,
  turnView,
} from "./views.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;
/** Journal rows read at a time. */
const SLICE = 64;
const SNAPSHOT_MESSAGES = 50;
/** Characters of tool results in a snapshot. */
const MAX_SNAPSHOT_RESULTS = 4 * 1024 * 1024;

export class ConversationQueries {
  constructor(private readonly store: ConversationDatabase) {}

  messages(state: ConversationState, options: PageOptions = {}): Page<MessageView> {
    return this.#messages(state, options, new TurnReader(state, this.store));
  }

  #messages(state: ConversationState, options: PageOptions, reader: TurnReader): Page<MessageView> {
    return this.#page(options, state, (entry, _seq, at) => {
      if (!isTranscriptEntry(entry) || entry.turn === undefined) return null;
      if (!reader.admits(entry.turn)) return "full";
      const turn = reader.take(entry.turn);
      return turn === undefined ? null : messageView(turn, entry.item ?? 0, at);
    });
  }

  journal(state: ConversationState, options: PageOptions = {}): Page<JournalEntryView> {
    const stems = new Map<number, string | undefined>();
    return this.#page(options, state, (entry, seq, at) => {
      if (entry.turn === undefined) return journalEntryView(entry, seq, at, undefined);
      if (!stems.has(entry.turn)) stems.set(entry.turn, this.#facts(state, entry.turn)?.stem);
      const stem = stems.get(entry.turn);
      return journalEntryView(entry, seq, at, stem === undefined ? undefined : { stem, n: entry.turn });
    });
  }

  turns(options: PageOptions = {}): Page<TurnSummary> {
    const { limit, order, cursor } = readOptions(options);
    const start = cursor ?? (order === "asc" ? 0 : MAX_TURN_NUMBER + 1);
    const { turns, more } = this.store.turns.list(start, order, limit);
    const items = turns.map(factsOf);
    const last = items.at(-1);
    return {
      items: items.map(turnSummaryView),
      ...(more && last !== undefined ? { nextCursor: String(last.n) } : {}),
    };
  }

  /** Throws `NOT_FOUND` for an id that names no turn of this conversation. */
  turn(state: ConversationState, id: string): TurnView {
    const turn = this.requireTurn(state, id);
    const before = this.#facts(state, turn.n - 1);
    return turnView(state.record, turn, before === undefined ? undefined : turnId(before.stem, before.n));
  }

  requireTurn(state: ConversationState, id: string): Turn {
    const address = parseItemId(id);
    const turn =
      address?.prefix === "turn" ? new TurnReader(state, this.store).take(address.turn) : undefined;
    if (turn === undefined || turn.stem !== address?.stem) {
      throw new DramatisError("NOT_FOUND", "This conversation has no such turn.");
    }
    return turn;
  }

  snapshot(state: ConversationState, partials: Snapshot["partials"]): Snapshot {
    const reader = new TurnReader(state, this.store);
    const { items } = this.#messages(state, { limit: SNAPSHOT_MESSAGES, order: "desc" }, reader);
    const numbers = new Set([
      ...state.active.keys(),
      ...items.map(({ turnId }) => parseItemId(turnId)?.turn ?? 0),
    ]);
    const turns = [...numbers].sort((a, b) => a - b).flatMap((n) => reader.take(n) ?? []);
    return {
      conversation: conversationView(state.record, state.active.size),
      turns: turns.map(answeredTurnView),
      messages: items.reverse(),
      partials,
      operations: operationsWithin(turns),
    };
  }

  /** One slice of the frames after entry `after`, and the last entry it covers (`done` when that is the newest). */
  replay(state: ConversationState, after: number): { frames: Frame[]; upTo: number; done: boolean } {
    const reader = new TurnReader(state, this.store);
    const frames: Frame[] = [];
    let upTo: number | undefined;
    for (const row of this.store.journal.forward(after + 1, SLICE)) {
      if (!row.entries.every(({ turn }) => turn === undefined || reader.admits(turn))) break;
      frames.push(...framesOf(row, after, reader.take));
      upTo = lastSeq(row);
    }
    upTo ??= state.seq;
    return { frames, upTo, done: upTo >= state.seq };
  }

  /** A turn without the content of a finished one. */
  #facts(state: ConversationState, n: number): TurnFacts | undefined {
    const stored = state.active.has(n) ? null : this.store.turns.get(n);
    return stored === null ? state.active.get(n) : factsOf(stored);
  }

  /** A page over journal entries. `pick` gives an item, `null` to leave an entry out, or `full` to end the page. */
  #page<Item>(
    options: PageOptions,
    state: ConversationState,
    pick: (entry: JournalEntry, seq: number, at: number) => Item | null | "full",
  ): Page<Item> {
    const { limit, order, cursor } = readOptions(options);
    const items: Item[] = [];
    let position = cursor;
    for (const { entry, seq, at } of this.#entries(order, cursor, state.seq)) {
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

  *#entries(order: "asc" | "desc", cursor: number | undefined, newest: number) {
    const ascending = order === "asc";
    let next = cursor === undefined ? (ascending ? 1 : newest) : cursor + (ascending ? 1 : -1);
    while (next >= 1 && next <= newest) {
      const { journal } = this.store;
      const rows: JournalRow[] = ascending ? journal.forward(next, SLICE) : journal.backward(next, SLICE);
      for (const row of rows) {
        const numbered = row.entries.map((entry, index) => ({ entry, seq: row.seq + index, at: row.at }));
        if (!ascending) numbered.reverse();
        for (const item of numbered) {
          if (ascending ? item.seq < next : item.seq > next) continue;
          yield item;
        }
      }
      const last = rows.at(-1);
      if (last === undefined) return;
      next = ascending ? lastSeq(last) + 1 : last.seq - 1;
    }
  }
}

/** The operations of turns. Results are given newest first, as far as they fit; a turn's own view has them all. */
function operationsWithin(turns: readonly Turn[]): OperationView[] {
  let left = MAX_SNAPSHOT_RESULTS;
  const views = turns
    .flatMap((turn) => turn.operations.map((operation) => ({ turn, operation })))
    .reverse()
    .map(({ turn, operation }) => {
      left -= operation.result === undefined ? 0 : resultLength(operation.result);
      const { result, ...view } = operationView(turn, operation);
      return left < 0 || result === undefined ? view : { ...view, result };
    });
  return views.reverse();
}

/** What a list shows of a turn; the content of a finished one is not read for it. */
function factsOf(stored: StoredTurn): TurnFacts {
  return stored.whole ? stored.turn : { ...stored.summary, status: "completed" };
}

function readOptions({ limit = DEFAULT_LIMIT, order = "asc", cursor }: PageOptions) {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw invalid("/limit", `Give a whole number from 1 to ${MAX_LIMIT}.`);
  }
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
    throw invalid("/cursor", "Give back a `nextCursor` as it was.");
  }
  return { limit, order, cursor: cursor === undefined ? undefined : Number(cursor) };
}

function invalid(path: string, message: string): DramatisError {
  return new DramatisError("INVALID_INPUT", message, { errors: [{ path, message }] });
}
