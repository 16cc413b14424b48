/** SQL statements for the rows of an agent's memory. Writing methods run in a transaction. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryLogEntry, MemorySource } from "../../protocol/memory-schemas.ts";
import { bothOrders } from "../../shared/page.ts";
import { filterValues, MATCHES } from "./memory-filter.ts";
import type { CheckedFilter } from "./schemas.ts";
import type { StoredMemory } from "./stored-memory.ts";
import type { Visible } from "./visibility.ts";

const HAS_TABLES = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'memory_pending'";

const PUT = `INSERT INTO memories
  (n, id, key, content, long, ref, hash, type, significance, speaker, session, sequence, time, metadata, user_id, conversation_id,
    state, hidden, tainted, own, valid_from, valid_to, version, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)
ON CONFLICT DO UPDATE SET content = excluded.content, long = excluded.long, ref = excluded.ref, hash = excluded.hash,
  type = excluded.type, significance = excluded.significance, speaker = excluded.speaker, session = excluded.session,
  sequence = excluded.sequence, time = excluded.time, metadata = excluded.metadata, state = excluded.state,
  hidden = excluded.hidden, tainted = excluded.tainted, own = excluded.own, valid_from = excluded.valid_from, valid_to = excluded.valid_to,
  version = excluded.version, updated_at = excluded.updated_at`;
/** `hidden` is 1 for a memory that waits for rederivation, and 2 for a condemned memory. Reads omit a condemned memory until its erasure. */
const GET = "SELECT * FROM memories WHERE n = ? AND hidden < 2";
const GET_CONDEMNED = "SELECT * FROM memories WHERE n = ? AND hidden = 2";
const CONDEMNED = "SELECT n FROM memories WHERE hidden = 2 ORDER BY n LIMIT ?";
const CONDEMN = "UPDATE memories SET hidden = 2 WHERE n IN (SELECT value FROM json_each(?))";
const CONDEMN_ALL =
  "UPDATE memories SET hidden = 2 WHERE n IN (SELECT n FROM memory_sources WHERE conversation_id = ?)";
const BY_NUMBERS = "SELECT * FROM memories WHERE n IN (SELECT value FROM json_each(?)) AND hidden < 2";
const REMOVE = "DELETE FROM memories WHERE n = ?";
const NEXT = `SELECT MAX(
  (SELECT COALESCE(MAX(n), 0) FROM memories), (SELECT COALESCE(MAX(n), 0) FROM memory_tombstones)) + 1 AS n`;
const BY_KEY = `SELECT * FROM memories
  WHERE key = ?1 AND user_id IS ?2 AND (?3 = 1 OR conversation_id IS ?4) AND hidden < 2 ORDER BY n`;
const BY_HASH = "SELECT * FROM memories WHERE hash = ? AND hidden < 2 ORDER BY n";
const ENDING =
  "SELECT * FROM memories WHERE valid_to <= ? AND valid_to IS NOT NULL AND state = 'current' AND hidden < 2 LIMIT 100";
const AFTER = "SELECT * FROM memories WHERE n > ? AND state = 'current' AND hidden = 0 ORDER BY n LIMIT ?";

const LIST = bothOrders(
  (comparison, order) =>
    `SELECT * FROM memories WHERE ${MATCHES} AND hidden = 0 AND n ${comparison} ?14 ORDER BY n ${order} LIMIT ?15`,
);
const NUMBERS = `SELECT n FROM memories WHERE ${MATCHES} AND hidden = 0`;

const ADD_LOG = "INSERT OR REPLACE INTO memory_log (n, version, entry) VALUES (?, ?, ?)";
const LOG = "SELECT entry FROM memory_log WHERE n = ? ORDER BY version DESC LIMIT ?";
const LOG_BEFORE = "SELECT entry FROM memory_log WHERE n = ? AND version < ? ORDER BY version DESC LIMIT ?";
const BLANK_LOG = `UPDATE memory_log SET entry = json_set(entry, '$.before.content', '')
  WHERE n = ? AND json_extract(entry, '$.before.content') <> ''`;
const REMOVE_LOG = "DELETE FROM memory_log WHERE n = ?";

/** `stated_version` is the version of the memory at which the source stated its text, or `NULL`. */
const ADD_SOURCE = `INSERT INTO memory_sources (conversation_id, turn_id, n, entries, stated_version) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET entries = excluded.entries, stated_version = excluded.stated_version
  WHERE entries IS NOT excluded.entries OR stated_version IS NOT excluded.stated_version`;
const SOURCES =
  "SELECT conversation_id, turn_id, entries, stated_version FROM memory_sources WHERE n = ? ORDER BY turn_id";
const SOURCE =
  "SELECT entries, stated_version FROM memory_sources WHERE conversation_id = ? AND turn_id = ? AND n = ?";
const SOURCES_OF = `SELECT turn_id, n, entries FROM memory_sources
  WHERE conversation_id = ? AND turn_id IN (SELECT value FROM json_each(?))`;
const HAS_ORIGIN = `SELECT EXISTS (SELECT 1 FROM memory_sources WHERE n = ?1) OR EXISTS (SELECT 1 FROM memory_parts WHERE n = ?1) AS found`;
const REMOVE_SOURCE = "DELETE FROM memory_sources WHERE conversation_id = ? AND turn_id = ? AND n = ?";
const REMOVE_SOURCES = "DELETE FROM memory_sources WHERE n = ?";

const ADD_PART = "INSERT OR IGNORE INTO memory_parts (part, n, part_id) VALUES (?, ?, ?)";
const PARTS = "SELECT part_id FROM memory_parts WHERE n = ? ORDER BY part";
const WHOLES = "SELECT n FROM memory_parts WHERE part = ?";
const REMOVE_PARTS = "DELETE FROM memory_parts WHERE n = ?1 OR part = ?1";

const LOG_PAGE = 50;

const PUT_TEXT = "INSERT OR REPLACE INTO memory_texts (n, version, text) VALUES (?, ?, ?)";
const TEXT = "SELECT version, text FROM memory_texts WHERE n = ?";
const REMOVE_TEXT = "DELETE FROM memory_texts WHERE n = ?";

type MemoryRow = {
  n: number;
  id: string;
  key: string | null;
  content: string;
  long: number;
  ref: string | null;
  hash: string;
  type: string;
  significance: number;
  speaker: string | null;
  session: string | null;
  sequence: number | null;
  time: number | null;
  metadata: string;
  user_id: string | null;
  conversation_id: string | null;
  state: string;
  hidden: number;
  tainted: number;
  own: number;
  valid_from: number;
  valid_to: number | null;
  version: number;
  created_at: number;
  updated_at: number;
};
export type SourceRow = {
  conversation_id: string;
  turn_id: string;
  entries: string | null;
  stated_version: number | null;
};

/** A source, with the memory version at which it stated the text. */
export interface StatedSource extends MemorySource {
  statedVersion?: number;
}

export class MemoryStore {
  constructor(private readonly database: SqlDatabase) {}

  exists(): boolean {
    return this.database.all(HAS_TABLES).length > 0;
  }

  put(memory: StoredMemory): void {
    this.database.run(
      PUT,
      memory.n,
      memory.id,
      memory.key,
      memory.content,
      memory.long ? 1 : 0,
      memory.ref,
      memory.hash,
      memory.type,
      memory.significance,
      memory.speaker,
      memory.session,
      memory.sequence,
      memory.time,
      JSON.stringify(memory.metadata),
      memory.userId,
      memory.conversationId,
      memory.state,
      memory.hidden ? 1 : 0,
      memory.tainted ? 1 : 0,
      memory.own ? 1 : 0,
      memory.validFrom,
      memory.validTo,
      memory.version,
      memory.createdAt,
      memory.updatedAt,
    );
  }

  find(n: number): StoredMemory | undefined {
    return this.database.all<MemoryRow>(GET, n).map(toStored)[0];
  }

  byNumbers(ns: readonly number[]): Map<number, StoredMemory> {
    const rows = this.database.all<MemoryRow>(BY_NUMBERS, JSON.stringify(ns));
    return new Map(rows.map((row) => [row.n, toStored(row)]));
  }

  next(): number {
    return this.database.all<{ n: number }>(NEXT)[0]?.n ?? 1;
  }

  /** Returns the memories with a key. `userId` is `null` for memories without a user. `conversationId` is `undefined` for any conversation. */
  byKey(key: string, userId: string | null, conversationId: string | null | undefined): StoredMemory[] {
    const isAny = conversationId === undefined ? 1 : 0;
    return this.database.all<MemoryRow>(BY_KEY, key, userId, isAny, conversationId ?? null).map(toStored);
  }

  /** Hides memories from all readers until their erasure. */
  condemn(ns: readonly number[]): void {
    this.database.run(CONDEMN, JSON.stringify(ns));
  }

  condemnAll(conversationId: string): void {
    this.database.run(CONDEMN_ALL, conversationId);
  }

  condemned(limit: number): number[] {
    return this.database.all<{ n: number }>(CONDEMNED, limit).map(({ n }) => n);
  }

  hasCondemned(): boolean {
    return this.condemned(1).length > 0;
  }

  findCondemned(n: number): StoredMemory | undefined {
    return this.database.all<MemoryRow>(GET_CONDEMNED, n).map(toStored)[0];
  }

  byHash(hash: string): StoredMemory[] {
    return this.database.all<MemoryRow>(BY_HASH, hash).map(toStored);
  }

  /** Removes all rows of a memory except its tombstone. */
  remove(n: number): void {
    for (const statement of [REMOVE, REMOVE_LOG, REMOVE_SOURCES, REMOVE_PARTS, REMOVE_TEXT])
      this.database.run(statement, n);
  }

  /** Returns current memories with a `validTo` up to `now`. */
  ending(now: number): StoredMemory[] {
    return this.database.all<MemoryRow>(ENDING, now).map(toStored);
  }

  /** Returns memories after a number that searches find. */
  after(n: number, limit: number): StoredMemory[] {
    return this.database.all<MemoryRow>(AFTER, n, limit).map(toStored);
  }

  list(
    visible: Visible,
    filter: CheckedFilter,
    page: { order: "asc" | "desc"; after: number; limit: number },
  ): StoredMemory[] {
    const values = filterValues(visible, filter);
    return this.database.all<MemoryRow>(LIST[page.order], ...values, page.after, page.limit).map(toStored);
  }

  numbers(visible: Visible, filter: CheckedFilter): Set<number> {
    const rows = this.database.all<{ n: number }>(NUMBERS, ...filterValues(visible, filter));
    return new Set(rows.map(({ n }) => n));
  }

  addLog(n: number, entry: MemoryLogEntry): void {
    this.database.run(ADD_LOG, n, entry.version, JSON.stringify(entry));
  }

  /** Yields log entries, newest first, at most `limit`. Reads lazily. */
  *log(n: number, limit = -1): Generator<MemoryLogEntry> {
    // SAFETY: only `addLog` writes the column.
    for (const { entry } of this.database.each<{ entry: string }>(LOG, n, limit))
      yield JSON.parse(entry) as MemoryLogEntry;
  }

  /** Yields all log entries, newest first, in pages. The caller may change the log during the iteration. */
  *pagedLog(n: number): Generator<MemoryLogEntry> {
    for (let before = Number.MAX_SAFE_INTEGER; ; ) {
      const rows = this.database.all<{ entry: string }>(LOG_BEFORE, n, before, LOG_PAGE);
      // SAFETY: only `addLog` writes the column.
      for (const { entry } of rows) {
        const one = JSON.parse(entry) as MemoryLogEntry;
        before = one.version;
        yield one;
      }
      if (rows.length < LOG_PAGE) return;
    }
  }

  /** Erases the older texts in the log. The entries stay. */
  blankLog(n: number): void {
    this.database.run(BLANK_LOG, n);
  }

  /** Adds a source. If the turn is a source already, merges the entries and keeps the latest `statedVersion`. */
  addSource(n: number, { conversationId, turnId, entries, statedVersion }: StatedSource): void {
    const [row] = this.database.all<Pick<SourceRow, "entries" | "stated_version">>(
      SOURCE,
      conversationId,
      turnId,
      n,
    );
    const isWhole = entries === undefined || row?.entries === null;
    const all = isWhole
      ? null
      : [...new Set([...entriesOf(row?.entries ?? null), ...entries])].sort((a, b) => a - b);
    const version = Math.max(statedVersion ?? 0, row?.stated_version ?? 0) || null;
    const list = all === null ? null : JSON.stringify(all);
    this.database.run(ADD_SOURCE, conversationId, turnId, n, list, version);
  }

  sources(n: number): MemorySource[] {
    return this.statedSources(n).map(({ statedVersion: _, ...source }) => source);
  }

  statedSources(n: number): StatedSource[] {
    return this.database.all<SourceRow>(SOURCES, n).map(toSource);
  }

  hasOrigin(n: number): boolean {
    return this.database.all<{ found: number }>(HAS_ORIGIN, n)[0]?.found === 1;
  }

  /** Returns the sources in turns of a conversation, each with its memory number. `entries` is `null` for a whole turn. */
  sourcesOf(
    conversationId: string,
    turnIds: readonly string[],
  ): { turnId: string; n: number; entries: number[] | null }[] {
    const rows = this.database.all<{ turn_id: string; n: number; entries: string | null }>(
      SOURCES_OF,
      conversationId,
      JSON.stringify(turnIds),
    );
    return rows.map(({ turn_id, n, entries }) => ({
      turnId: turn_id,
      n,
      entries: entries === null ? null : entriesOf(entries),
    }));
  }

  removeSource(conversationId: string, turnId: string, n: number): void {
    this.database.run(REMOVE_SOURCE, conversationId, turnId, n);
  }

  addPart(n: number, part: { n: number; id: string }): void {
    this.database.run(ADD_PART, part.n, n, part.id);
  }

  parts(n: number): string[] {
    return this.database.all<{ part_id: string }>(PARTS, n).map(({ part_id }) => part_id);
  }

  summariesOf(n: number): number[] {
    return this.database.all<{ n: number }>(WHOLES, n).map((row) => row.n);
  }

  putText(n: number, version: number, text: string): void {
    this.database.run(PUT_TEXT, n, version, text);
  }

  text(n: number): { version: number; text: string } | undefined {
    return this.database.all<{ version: number; text: string }>(TEXT, n)[0];
  }

  removeText(n: number): void {
    this.database.run(REMOVE_TEXT, n);
  }
}

export function toSource({ conversation_id, turn_id, entries, stated_version }: SourceRow): StatedSource {
  return {
    conversationId: conversation_id,
    turnId: turn_id,
    ...(entries !== null && { entries: entriesOf(entries) }),
    ...(stated_version !== null && { statedVersion: stated_version }),
  };
}

function entriesOf(entries: string | null): number[] {
  // SAFETY: only `addSource` writes the column.
  return entries === null ? [] : (JSON.parse(entries) as number[]);
}

function toStored(row: MemoryRow): StoredMemory {
  const { user_id, conversation_id, valid_from, valid_to, created_at, updated_at, ...same } = row;
  return {
    ...same,
    long: row.long === 1,
    hidden: row.hidden !== 0,
    tainted: row.tainted === 1,
    own: row.own === 1,
    // SAFETY: only `put` writes these columns.
    metadata: JSON.parse(row.metadata) as StoredMemory["metadata"],
    state: row.state as StoredMemory["state"],
    userId: user_id,
    conversationId: conversation_id,
    validFrom: valid_from,
    validTo: valid_to,
    createdAt: created_at,
    updatedAt: updated_at,
  };
}
