/**
 * Stores events as rows of `cf_agents_events`, one row per event.
 *
 * EVENTS-1  Appending a batch is atomic, and usually takes one statement. It writes one row per event. The index of compactions adds a row
 *           per compaction, and the index of ids, if it exists, adds a row per event.
 * EVENTS-2  Content and metadata are read back exactly, up to `MAX_TEXT_BYTES` each.
 * EVENTS-3  A read is limited by rows and bytes, and does not touch the rows beyond.
 * EVENTS-4  One statement reads a window. Another statement reads the contents that its events refer to. The window starts at the newest
 *           compaction at any distance, and reads no covered event.
 * EVENTS-5  An event may refer to a stored text instead of containing a copy. Readers see no difference. The text is deleted with the
 *           event.
 * EVENTS-6  With the index of ids, deleting events by id reads only these events. One more statement deletes their texts outside their
 *           rows.
 */
import { jsonBatches, MAX_BATCH_BYTES, textBatches } from "../../ports/sql-batches.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { checkSqlValues } from "../../ports/sql-values.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { dehydrateEvent, hydrateEvent } from "./event-rows.ts";
import {
  INLINE_BYTES,
  type LongText,
  type PackedText,
  packedBytes,
  referenceOf,
  referenceText,
  type TextReference,
} from "./long-text.ts";
import {
  coverage,
  EventAction,
  isCompaction,
  type LoadEventsOptions,
  type SessionEvent,
  type StoredEvent,
} from "./session-event.ts";
import { Supersessions } from "./supersession.ts";

const DEFAULT_EVENT_LIMIT = 50;

/** Default limit of content and metadata of a read, in bytes. */
const DEFAULT_WINDOW_BYTES = 8 * 1024 * 1024;

/** Events with more UTF-16 units of text are stored one by one, because they may need pieces. */
const MAX_BATCHED_UNITS = INLINE_BYTES / 3;

const CREATE = `CREATE TABLE IF NOT EXISTS cf_agents_events (
  id TEXT NOT NULL, session_id TEXT NOT NULL, seq INTEGER NOT NULL, action TEXT NOT NULL,
  created_at INTEGER NOT NULL, content TEXT, metadata TEXT, PRIMARY KEY (session_id, seq)) WITHOUT ROWID`;

const INDEX_IDS = `CREATE INDEX IF NOT EXISTS cf_agents_event_ids ON cf_agents_events (session_id, id)`;

const INSERT_ONE = `INSERT INTO cf_agents_events (id, session_id, seq, action, created_at, content, metadata)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;

const INSERT_BATCH = `INSERT INTO cf_agents_events (id, session_id, seq, action, created_at, content, metadata)
  SELECT value ->> 0, ?1, value ->> 1, value ->> 2, value ->> 3,
    coalesce(value ->> 4, CAST(value ->> 6 AS BLOB)), value ->> 5 FROM json_each(?2)`;

const FILTER = `FROM cf_agents_events WHERE session_id = ?1 AND seq < ?2 AND seq >= ?6
  AND (?3 IS NULL OR created_at >= ?3) AND (?4 IS NULL OR action IN (SELECT value FROM json_each(?4)))`;
const SELECT_LAST = `SELECT * ${FILTER} ORDER BY seq DESC LIMIT ?5`;
const SELECT_FIRST = `SELECT * ${FILTER} ORDER BY seq LIMIT ?5`;

const SELECT_AT = `SELECT * FROM cf_agents_events
  WHERE session_id = ?1 AND seq IN (SELECT value FROM json_each(?2)) ORDER BY seq`;

/** Created with the first compaction, so a database without compactions has no cost for the search. */
const CREATE_COMPACTIONS = `CREATE INDEX IF NOT EXISTS cf_agents_compactions ON cf_agents_events (session_id, seq)
  WHERE action = 'compaction'`;
/** Yields the newest compaction, if the index exists, then the events, newest first. Rows are read lazily. */
const NEWEST_COMPACTION = `SELECT max(event.seq) FROM sqlite_master AS made CROSS JOIN cf_agents_events AS event
  WHERE made.name = 'cf_agents_compactions'
  AND event.session_id = ?1 AND event.seq < ?2 AND event.action = 'compaction'`;
const SELECT_WINDOW = `SELECT * FROM cf_agents_events WHERE session_id = ?1 AND seq = (${NEWEST_COMPACTION})
  UNION ALL SELECT * FROM (
    SELECT * FROM cf_agents_events WHERE session_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3)`;
const COUNT = "SELECT count(*) AS n FROM cf_agents_events WHERE session_id = ? AND seq >= ? AND seq < ?";

const NEXT = "SELECT coalesce(max(seq) + 1, 0) AS next FROM cf_agents_events WHERE session_id = ?";

const DELETE_NAMED = `DELETE FROM cf_agents_events
  WHERE session_id = ?1 AND seq IN (
    SELECT event.seq FROM json_each(?2) AS given CROSS JOIN cf_agents_events AS event
    WHERE event.session_id = ?1 AND event.id = given.value)
  RETURNING seq, CASE typeof(content) WHEN 'blob' THEN content END AS content, typeof(metadata) = 'blob' AS is_long`;
const DELETE_RANGE = `DELETE FROM cf_agents_events WHERE session_id = ?1 AND seq >= ?2 AND seq < ?3
  RETURNING seq, CASE typeof(content) WHEN 'blob' THEN content END AS content, typeof(metadata) = 'blob' AS is_long`;
const SELECT_HANDLES =
  "SELECT content FROM cf_agents_events WHERE session_id = ? AND typeof(content) = 'blob'";
const DELETE_SESSION = "DELETE FROM cf_agents_events WHERE session_id = ?";

/** A row as stored: long text is a handle. */
type EventRow = Omit<StoredEvent, "content" | "metadata"> & {
  content: PackedText | null;
  metadata: PackedText | null;
};

/** A row before its deletion. Its content is present only if it is a handle. */
type DeletedRow = Pick<EventRow, "seq" | "content"> & { is_long: number };

/** A row to write, with an optional reference to its content. */
type NewRow = StoredEvent & { reference?: TextReference };

/** Limits of a window of a session. */
export type LoadWindowOptions = Pick<LoadEventsOptions, "before" | "limit" | "maxBytes"> & {
  /** Stop after this many user messages. */
  userMessages?: number;
};

export interface EventWindow {
  /** Ascending. */
  events: SessionEvent[];
  /** Set if there are earlier uncovered events. */
  isCutOff: boolean;
}

export class EventStore {
  constructor(
    private readonly db: SqlDatabase,
    private readonly longText: LongText,
  ) {}

  createTable(): void {
    this.db.run(CREATE);
  }

  /** Creates the index of event ids, if it does not exist. It costs a row per event. */
  indexIds(): void {
    this.db.run(INDEX_IDS);
  }

  /**
   * Appends events with sequence numbers from `firstSeq`, which must be free. Ignores the events' own `sessionId` and `seq`. If `contents`
   * has a text for an event's id, the event refers to that text instead of a copy (EVENTS-5). Throws `INVALID_INPUT` for text that SQLite
   * cannot store, and `TOO_LARGE` for too much text.
   */
  append(
    sessionId: string,
    firstSeq: number,
    events: readonly SessionEvent[],
    contents: ReadonlyMap<string, TextReference> = new Map(),
  ): void {
    const rows = events.map((event, index): NewRow => {
      const row = dehydrateEvent({ ...event, sessionId, seq: firstSeq + index });
      const reference = contents.get(event.id);
      return reference === undefined ? row : { ...row, content: null, reference };
    });
    const { batches, apart } = planInserts(rows);
    const compacts = rows.some(({ action }) => action === EventAction.COMPACTION);
    const insert = () => {
      if (compacts) this.db.run(CREATE_COMPACTIONS);
      for (const batch of batches) this.db.run(INSERT_BATCH, sessionId, batch);
      for (const row of apart) this.insertLong(row);
    };
    if (batches.length > 1 || apart.length > 0 || compacts) this.db.transaction(insert);
    else insert();
  }

  /** Returns the selected events of a session, ascending. Empty for an unknown session. */
  load(sessionId: string, options: LoadEventsOptions = {}): SessionEvent[] {
    const tail = options.tail ?? true;
    const maxBytes = options.maxBytes ?? DEFAULT_WINDOW_BYTES;
    const selected = this.db.each<EventRow>(
      tail ? SELECT_LAST : SELECT_FIRST,
      sessionId,
      options.before ?? Number.MAX_SAFE_INTEGER,
      options.since ?? null,
      options.actions === undefined ? null : JSON.stringify(options.actions),
      options.limit ?? DEFAULT_EVENT_LIMIT,
      options.from ?? 0,
    );
    const rows: EventRow[] = [];
    let bytes = 0;
    for (const row of selected) {
      bytes += sizeOf(row.content) + sizeOf(row.metadata);
      if (bytes > maxBytes && rows.length > 0) break;
      rows.push(row);
    }
    if (tail) rows.reverse();
    return this.eventsOf(rows);
  }

  /** Returns the events with these sequence numbers, ascending. */
  at(sessionId: string, seqs: readonly number[]): SessionEvent[] {
    return this.eventsOf(this.db.all<EventRow>(SELECT_AT, sessionId, JSON.stringify(seqs)));
  }

  /** Returns the newest uncovered events and the newest compaction (EVENTS-4). */
  loadWindow(sessionId: string, options: LoadWindowOptions = {}): EventWindow {
    const { before = Number.MAX_SAFE_INTEGER, limit = DEFAULT_EVENT_LIMIT } = options;
    const { maxBytes = DEFAULT_WINDOW_BYTES, userMessages = Number.POSITIVE_INFINITY } = options;
    const window = new Map<number, EventRow>();
    const supersessions = new Supersessions();
    let covered = 0;
    let rows = 0;
    let bytes = 0;
    let events = 0;
    let messages = 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (const row of this.db.each<EventRow>(SELECT_WINDOW, sessionId, before, limit)) {
      if (row.seq < covered) {
        oldest = covered;
        break;
      }
      rows += 1;
      if (this.isSuperseded(row, supersessions)) {
        oldest = row.seq;
        continue;
      }
      const isKnown = window.has(row.seq);
      bytes += isKnown ? 0 : sizeOf(row.content) + sizeOf(row.metadata);
      if (bytes > maxBytes && events > 0) break;
      window.set(row.seq, row);
      const isCompacted = row.action === EventAction.COMPACTION;
      if (isCompacted && !isKnown) covered = Math.max(covered, this.coverageOf(row));
      // The statement yields the newest compaction first, and may repeat it as an event.
      if (window.size === 1 && !isKnown && isCompacted) {
        rows = 0;
        continue;
      }
      events += 1;
      oldest = row.seq;
      if (row.action === EventAction.USER_MESSAGE) messages += 1;
      if (messages === userMessages || oldest <= covered) break;
    }
    const isStopped = messages === userMessages || rows === limit || bytes > maxBytes;
    return {
      events: this.eventsOf([...window.values()].sort((one, other) => one.seq - other.seq)),
      isCutOff: isStopped && oldest > covered,
    };
  }

  /** Returns the number that follows the newest event of a session. */
  nextNumber(sessionId: string): number {
    return this.db.all<{ next: number }>(NEXT, sessionId)[0]?.next ?? 0;
  }

  /** Counts the events with a sequence number from `from` to below `before`. */
  count(sessionId: string, from: number, before: number): number {
    return this.db.all<{ n: number }>(COUNT, sessionId, from, before)[0]?.n ?? 0;
  }

  /** Deletes the events of a session with these ids. Ignores unknown ids. */
  delete(sessionId: string, eventIds: readonly string[]): void {
    if (eventIds.length === 0) return;
    this.db.transaction(() => {
      const keys = textBatches(eventIds)
        .flatMap((ids) => this.db.all<DeletedRow>(DELETE_NAMED, sessionId, ids))
        .flatMap((row) => keysOfEvent(sessionId, row));
      this.longText.discardKeys(keys);
    });
  }

  /** Deletes the events of a session with a sequence number from `from` to below `before`, with their texts. */
  deleteRange(sessionId: string, from: number, before: number): void {
    this.db.transaction(() => {
      const rows = this.db.all<DeletedRow>(DELETE_RANGE, sessionId, from, before);
      const keys = rows.flatMap((row) => keysOfEvent(sessionId, row));
      this.longText.discardKeys(keys);
    });
  }

  deleteSession(sessionId: string): void {
    this.db.transaction(() => {
      this.longText.discardKeys(keysOf(this.db.all<{ content: PackedText }>(SELECT_HANDLES, sessionId)));
      this.db.run(DELETE_SESSION, sessionId);
      this.longText.discardAll(textKey(sessionId));
    });
  }

  private insertLong(row: NewRow): void {
    const key = textKey(row.session_id, row.seq);
    const content =
      row.reference !== undefined
        ? new TextEncoder().encode(referenceText(row.reference))
        : row.content === null
          ? null
          : this.longText.pack(`${key}content`, row.content);
    const left = INLINE_BYTES - (typeof content === "string" ? utf8Length(content) : 0);
    const metadata = row.metadata === null ? null : this.longText.pack(`${key}metadata`, row.metadata, left);
    this.db.run(INSERT_ONE, row.id, row.session_id, row.seq, row.action, row.created_at, content, metadata);
  }

  /** Returns the events of rows. One statement reads all contents that they refer to. */
  private eventsOf(rows: readonly EventRow[]): SessionEvent[] {
    const texts = this.longText.read(rows.flatMap(({ content }) => referenceOf(content) ?? []));
    return rows.map((row) => {
      const unpack = (column: "content" | "metadata") => {
        const packed = row[column];
        if (packed === null) return null;
        const key = referenceOf(packed)?.key;
        if (key !== undefined) return texts.get(key) ?? null;
        return this.longText.unpack(`${textKey(row.session_id, row.seq)}${column}`, packed);
      };
      return hydrateEvent({ ...row, content: unpack("content"), metadata: unpack("metadata") });
    });
  }

  /** Reports whether a later event supersedes a row (SUPERSEDE-1). Rows come from the newest to the oldest. */
  private isSuperseded(row: EventRow, supersessions: Supersessions): boolean {
    const { id, action } = row;
    if (action !== EventAction.SUPERSESSION) return supersessions.skips({ id, action });
    const [event] = this.eventsOf([{ ...row, content: null }]);
    return supersessions.skips(event ?? { id, action });
  }

  private coverageOf(row: EventRow): number {
    const [event] = this.eventsOf([{ ...row, content: null }]);
    return event !== undefined && isCompaction(event) ? coverage(event, row.seq) : 0;
  }
}

function keysOf(rows: readonly { content: PackedText | null }[]): string[] {
  return rows.flatMap(({ content }) => referenceOf(content)?.key ?? []);
}

function keysOfEvent(sessionId: string, { seq, content, is_long }: DeletedRow): string[] {
  const key = textKey(sessionId, seq);
  return [
    ...(content === null ? [] : [referenceOf(content)?.key ?? `${key}content`]),
    ...(is_long === 1 ? [`${key}metadata`] : []),
  ];
}

/** Groups rows into batches, each as one JSON text. Rows that are too long for a batch stay apart. */
function planInserts(rows: readonly NewRow[]): { batches: string[]; apart: NewRow[] } {
  const batched: string[] = [];
  const apart: NewRow[] = [];
  for (const row of rows) {
    // JSON escapes a lone surrogate, and SQLite would alter it, so each text is checked first.
    checkSqlValues([row.id, row.action, row.created_at]);
    const isLong = (row.content?.length ?? 0) + (row.metadata?.length ?? 0) > MAX_BATCHED_UNITS;
    if (!isLong) checkSqlValues([row.content, row.metadata]);
    const columns = [row.id, row.seq, row.action, row.created_at, row.content, row.metadata];
    if (row.reference !== undefined) columns.push(referenceText(row.reference));
    const text = isLong ? "" : JSON.stringify(columns);
    if (isLong || utf8Length(text) >= MAX_BATCH_BYTES) apart.push(row);
    else batched.push(text);
  }
  return { batches: jsonBatches(batched), apart };
}

/** Returns the prefix of the keys of an event's long texts, or of a session's. The length separates sessions. */
function textKey(sessionId: string, seq?: number): string {
  const session = `event:${sessionId.length}:${sessionId}:`;
  return seq === undefined ? session : `${session}${seq}:`;
}

function sizeOf(packed: PackedText | null): number {
  return packed === null ? 0 : packedBytes(packed);
}
