/**
 * Reads of a log: pages of events, and searches of messages.
 *
 * EVLOG-5  A read looks at a bounded number of batches. If it ends before the log does, the page may be short and has a cursor.
 * EVLOG-6  A read with a filter reads the batches of one label. Without a label, it takes all batches in order. The types of nearly
 *        every turn have no label. `since` finds its first batch by a binary search.
 * EVLOG-7  `until` ends a read an hour after its time. Batches that arrived later than that have a label of their own.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { EventFilter, FoundMessage, LoggedEvent, SearchRequest } from "../../protocol/event-log.ts";
import { defined } from "../../shared/defined.ts";
import { RUN_ID } from "../../shared/identifiers.ts";
import { DEFAULT_PAGE_SIZE, type Page } from "../../shared/page.ts";
import { toIso } from "../../shared/time.ts";
import {
  entriesOf,
  LATE_MS,
  type LogStore,
  labelOf,
  MAX_BATCH_TEXTS,
  type StoredText,
  textsOf,
} from "./log-store.ts";
import {
  ASCENDING,
  BEGIN_OF,
  DESCENDING,
  type EntriesRow,
  LABELLED_ASCENDING,
  LABELLED_DESCENDING,
  MATCHES,
  READ_BATCH,
  READ_TEXTS,
  RECEIVED_FROM,
} from "./log-tables.ts";
import { queryOf, snippetOf } from "./words.ts";

/** Most batches of one read of events. */
export const MAX_READ = 2_000;
/** Most messages that one search looks at. */
const MAX_MATCHES = 1_000;
/** Batches, or matches, of one statement. */
const SLICE = 64;
const LAST = Number.MAX_SAFE_INTEGER;

interface Segment {
  /** Batches with one of these labels; all batches for `null`. */
  labels: readonly string[] | null;
  /** Numbers of the log, both included. */
  low: number;
  high: number;
}

/** Events after a position. */
export interface Scan {
  events: LoggedEvent[];
  /** The position from which the scan continues; `null` at the end of the log. */
  next: number | null;
}

export class LogReader {
  constructor(
    private readonly database: SqlDatabase,
    private readonly store: LogStore,
  ) {}

  events(
    filter: EventFilter,
    { limit, order, cursor }: { limit: number; order: "asc" | "desc"; cursor?: string | undefined },
  ): Page<LoggedEvent> {
    const isAscending = order === "asc";
    const start = cursor === undefined ? (isAscending ? 1 : LAST) : Number(cursor) + (isAscending ? 1 : -1);
    const { events, next } = this.scan(filter, start, order, limit + 1);
    const items = events.slice(0, limit);
    const last = items.at(-1);
    if (events.length > limit && last !== undefined) return { items, nextCursor: String(last.seq) };
    return next === null ? { items } : { items, nextCursor: String(next + (isAscending ? -1 : 1)) };
  }

  /** Returns at most `limit` events from a position. */
  scan(filter: EventFilter, from: number, order: "asc" | "desc", limit: number): Scan {
    const events: LoggedEvent[] = [];
    const isAscending = order === "asc";
    const step = isAscending ? 1 : -1;
    let left = MAX_READ;
    for (const { labels, ...segment } of this.#segments(filter, order)) {
      const low = isAscending ? Math.max(segment.low, from) : segment.low;
      const high = isAscending ? segment.high : Math.min(segment.high, from);
      const begin = this.#beginOf(low);
      for (let [first, last] = [begin, high]; first <= last; ) {
        const rows = this.#rows(labels, first, last, order);
        for (const row of rows) {
          const found = eventsOf(row).filter(({ seq }) => low <= seq && seq <= high);
          for (const event of isAscending ? found : found.reverse()) {
            if (!isWanted(event, filter)) continue;
            events.push(viewOf(event));
            if (events.length === limit) return { events, next: event.seq + step };
          }
        }
        const end = rows.at(-1);
        if (end === undefined || rows.length < SLICE) break;
        if (isAscending) first = end.seq + end.count;
        else last = end.seq - 1;
        left -= rows.length;
        if (left <= 0) return { events, next: isAscending ? first : last };
      }
    }
    return { events, next: null };
  }

  /** Returns the messages of a query, newest first. `reader` is the principal who reads own conversations only. */
  search(
    { q, agent, user, role, since, until, limit = DEFAULT_PAGE_SIZE, cursor }: SearchRequest,
    reader: string | undefined,
  ): Page<FoundMessage> {
    const { match, late, found } = queryOf(q, { agent, user, reader });
    if (match === null || !this.store.exists) return { items: [] };
    const readable = new Map<string, boolean>();
    const mayRead = ({ conversationId: id }: FoundMessage): boolean => {
      if (reader === undefined) return true;
      const isReader = readable.get(id) ?? this.store.readersOf(id).includes(reader);
      readable.set(id, isReader);
      return isReader;
    };
    let batch: (MessagesOfBatch & { n: number }) | undefined;
    const items: FoundMessage[] = [];
    const places: number[] = [];
    let left = MAX_MATCHES;
    const time = defined({ since, until });
    const before = cursor === undefined ? LAST : Number(cursor) - 1;
    for (const { labels, low, high } of this.#segments(time, "desc")) {
      const least = low * MAX_BATCH_TEXTS;
      for (let at = Math.min(before, (high + 1) * MAX_BATCH_TEXTS - 1); at >= least; ) {
        const expression = labels === null ? match : late;
        const rows = this.database.all<{ place: number }>(MATCHES, expression, least, at, SLICE);
        for (const { place } of rows) {
          const n = Math.floor(place / MAX_BATCH_TEXTS);
          // Matches of a batch follow each other.
          if (batch?.n !== n) batch = { n, ...this.#batch(n) };
          const message = messageOf(batch, place % MAX_BATCH_TEXTS, found, time);
          if (message === null || (role ?? message.role) !== message.role || !mayRead(message)) continue;
          const last = places.at(-1);
          if (items.length === limit && last !== undefined) return { items, nextCursor: String(last) };
          items.push(message);
          places.push(place);
        }
        const last = rows.at(-1);
        if (last === undefined || rows.length < SLICE) break;
        at = last.place - 1;
        left -= rows.length;
        if (left <= 0) return { items, nextCursor: String(last.place) };
      }
    }
    return { items };
  }

  #batch(n: number): MessagesOfBatch {
    const [row] = this.database.all<{ conversation: string; texts: string | null }>(READ_TEXTS, n);
    return { conversationId: row?.conversation ?? "", texts: textsOf(row?.texts ?? null) };
  }

  /** Returns the parts of the log to read, in order. */
  #segments(filter: EventFilter, order: "asc" | "desc"): Segment[] {
    if (!this.store.exists) return [];
    const { since, until, after = 0 } = filter;
    const low = Math.max(after + 1, since === undefined ? 1 : this.#receivedFrom(since));
    const labels = labelsFor(filter);
    if (until === undefined) return [{ labels, low, high: LAST }];
    const end = this.#receivedFrom(until + LATE_MS);
    const segments = [
      { labels, low, high: end - 1 },
      { labels: [labelOf.late], low: Math.max(low, end), high: LAST },
    ];
    return order === "asc" ? segments : segments.reverse();
  }

  /** Returns the number of the first batch that arrived at a time or later. */
  #receivedFrom(time: number): number {
    let [low, high] = [1, this.store.last + 1];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [row] = this.database.all<{ seq: number; received: number }>(RECEIVED_FROM, middle);
      if (row === undefined || row.received >= time) high = middle;
      else low = row.seq + 1;
    }
    const [row] = this.database.all<{ seq: number; received: number }>(RECEIVED_FROM, low);
    return row?.seq ?? this.store.last + 1;
  }

  /** Returns the first number of the batch with an event. */
  #beginOf(seq: number): number {
    return this.database.all<{ seq: number | null }>(BEGIN_OF, seq)[0]?.seq ?? seq;
  }

  #rows(labels: readonly string[] | null, low: number, high: number, order: "asc" | "desc"): EntriesRow[] {
    const isAscending = order === "asc";
    if (labels === null)
      return this.database.all<EntriesRow>(isAscending ? ASCENDING : DESCENDING, low, high, SLICE);
    const statement = isAscending ? LABELLED_ASCENDING : LABELLED_DESCENDING;
    const numbers = labels.flatMap((label) =>
      this.database.all<{ seq: number }>(statement, label, low, high, SLICE).map(({ seq }) => seq),
    );
    return [...new Set(numbers)]
      .sort((a, b) => (isAscending ? a - b : b - a))
      .slice(0, SLICE)
      .flatMap((seq) => this.database.all<EntriesRow>(READ_BATCH, seq));
  }
}

/** Returns labels: each matching batch has at least one of these. Returns `null` to read all batches. */
function labelsFor({ correlation, conversation, run, agent, types }: EventFilter): string[] | null {
  if (correlation !== undefined) return [labelOf.correlation(correlation)];
  const journal = conversation ?? run;
  if (journal !== undefined) return [labelOf.journal(journal)];
  const ofTypes = types?.map(labelOf.type);
  if (ofTypes?.every((label) => label !== undefined)) return ofTypes;
  return agent === undefined ? null : [labelOf.agent(agent)];
}

type Times = Pick<EventFilter, "since" | "until">;

interface MessagesOfBatch {
  conversationId: string;
  texts: readonly StoredText[];
}

function messageOf(
  { conversationId, texts }: MessagesOfBatch,
  place: number,
  found: ReadonlySet<string>,
  time: Times,
): FoundMessage | null {
  const text = texts[place];
  if (text === undefined || !isWithin(text.at, time)) return null;
  const { at, text: whole, entry: _entry, words: _words, ...message } = text;
  return { conversationId, ...message, time: toIso(at), ...snippetOf(whole, found) };
}

function isWithin(at: number, { since, until }: Times): boolean {
  return (since === undefined || at >= since) && (until === undefined || at < until);
}

/** An event with the time of its entry in milliseconds. */
type TimedEvent = Omit<LoggedEvent, "time"> & { at: number };

function eventsOf({ seq, conversation, project, first, entries }: EntriesRow): TimedEvent[] {
  const journal = RUN_ID.test(conversation) ? { runId: conversation } : { conversationId: conversation };
  return entriesOf(entries).map((entry, index) => ({
    ...entry,
    ...{ seq: seq + index, ...journal, projectId: project, entry: first + index },
  }));
}

function viewOf(event: TimedEvent): LoggedEvent {
  const { at, seq, conversationId, runId, parentRunId, projectId, agentId, entry, type, ...others } = event;
  return {
    ...{ seq, ...defined({ conversationId, runId, parentRunId }), projectId, ...defined({ agentId }) },
    ...{ entry, type, time: toIso(at), ...others },
  };
}

function isWanted(event: TimedEvent, filter: EventFilter): boolean {
  const { types, conversation, run, agent, correlation, ...time } = filter;
  return (
    isWithin(event.at, time) &&
    (types === undefined || types.some((type) => type === event.type)) &&
    (conversation === undefined || event.conversationId === conversation) &&
    (run === undefined || event.runId === run) &&
    (agent === undefined || event.agentId === agent) &&
    (correlation === undefined || event.correlationId === correlation)
  );
}
