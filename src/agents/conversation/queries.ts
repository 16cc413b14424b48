/**
 * Reads of a conversation: pages of messages, turns and journal, the snapshot, and the replay of its frames.
 *
 * QUERY-1  Every read is bounded by rows and by bytes of content, whatever the history.
 * QUERY-2  Messages come in the order of the journal.
 */
import type { Frame, MessageView, Snapshot, TurnSummary as TurnSummaryView } from "../../client/protocol.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Page, PageOptions } from "../../shared/page.ts";
import type { JournalEntryView, TurnView } from "./api.ts";
import { framesOf, type TurnLookup } from "./frames.ts";
import { MAX_TURN_NUMBER, parseItemId } from "./ids.ts";
import type { JournalEntry, JournalRow } from "./journal-entry.ts";
import type { ConversationState, Turn } from "./state.ts";
import type { ConversationStore } from "./store/conversation-store.ts";
import { lastSeq } from "./store/journal.ts";
import {
  conversationView,
  isTranscriptEntry,
  journalEntryView,
  messageView,
  operationView,
  turnSummaryView,
  turnView,
} from "./views.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;
/** Journal rows read at a time. */
const SLICE = 64;
/** A page ends early once it holds this many characters of content. */
const MAX_PAGE_CHARACTERS = 4 * 1024 * 1024;
const SNAPSHOT_MESSAGES = 50;

export class ConversationQueries {
  constructor(private readonly store: ConversationStore) {}

  messages(state: ConversationState, options: PageOptions = {}): Page<MessageView> {
    const turnOf = this.#lookup(state);
    let characters = 0;
    return this.#page(options, state, (entry, _seq, at) => {
      if (!isTranscriptEntry(entry) || entry.turn === undefined) return null;
      if (characters > MAX_PAGE_CHARACTERS) return "full";
      const turn = turnOf(entry.turn);
      const view = turn === undefined ? null : messageView(turn, entry.item ?? 0, at);
      if (view !== null) characters += JSON.stringify(view.content).length;
      return view;
    });
  }

  journal(state: ConversationState, options: PageOptions = {}): Page<JournalEntryView> {
    const turnOf = this.#lookup(state);
    return this.#page(options, state, (entry, seq, at) =>
      journalEntryView(entry, seq, at, entry.turn === undefined ? undefined : turnOf(entry.turn)),
    );
  }

  turns(options: PageOptions = {}): Page<TurnSummaryView> {
    const { limit, order, cursor } = readOptions(options);
    const start = cursor ?? (order === "asc" ? 0 : MAX_TURN_NUMBER + 1);
    const stored = this.store.turns.list(start, order, limit + 1);
    const items = stored.slice(0, limit).map((row) => this.store.whole(row));
    const last = items.at(-1);
    const more = stored.length > limit && last !== undefined;
    return { items: items.map(turnSummaryView), ...(more ? { nextCursor: String(last.n) } : {}) };
  }

  /** Throws `NOT_FOUND` for an id that names no turn of this conversation. */
  turn(state: ConversationState, id: string): TurnView {
    return turnView(state.record.id, this.requireTurn(state, id));
  }

  requireTurn(state: ConversationState, id: string): Turn {
    const address = parseItemId(id);
    const turn = address?.prefix === "turn" ? this.#lookup(state)(address.turn) : undefined;
    if (turn === undefined || turn.stem !== address?.stem) {
      throw new DramatisError("NOT_FOUND", "This conversation has no such turn.");
    }
    return turn;
  }

  snapshot(state: ConversationState, partials: Snapshot["partials"]): Snapshot {
    const { items } = this.messages(state, { limit: SNAPSHOT_MESSAGES, order: "desc" });
    const turnOf = this.#lookup(state);
    const numbers = new Set([
      ...state.active.keys(),
      ...items.map(({ turnId }) => parseItemId(turnId)?.turn ?? 0),
    ]);
    const turns = [...numbers].sort((a, b) => a - b).flatMap((n) => turnOf(n) ?? []);
    return {
      conversation: conversationView(state.record, state.active.size),
      turns: turns.map(turnSummaryView),
      messages: items.reverse(),
      partials,
      operations: turns.flatMap((turn) => turn.operations.map((operation) => operationView(turn, operation))),
    };
  }

  /** One slice of the frames after entry `after`, and the last entry it covers (`done` when that is the newest). */
  replay(state: ConversationState, after: number): { frames: Frame[]; upTo: number; done: boolean } {
    const turnOf = this.#lookup(state);
    const rows = this.store.journal.forward(after + 1, SLICE);
    const last = rows.at(-1);
    const upTo = last === undefined ? state.seq : lastSeq(last);
    return { frames: rows.flatMap((row) => framesOf(row, after, turnOf)), upTo, done: upTo >= state.seq };
  }

  /** Active turns from memory, finished ones from the store, each read once. */
  #lookup(state: ConversationState): TurnLookup {
    const read = new Map<number, Turn | undefined>();
    return (n) => {
      const active = state.active.get(n);
      if (active !== undefined) return active;
      if (!read.has(n)) read.set(n, this.store.turn(n) ?? undefined);
      return read.get(n);
    };
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
      if (items.length === limit) return { items, nextCursor: String(position) };
      const item = pick(entry, seq, at);
      if (item === "full") return { items, nextCursor: String(position) };
      if (item !== null) items.push(item);
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
