/** Memories with pending copies, and the objects to delete after the copies are up to date. */
import type { SqlDatabase } from "../../ports/sql-database.ts";

const GET = "SELECT n, seq, objects, deleted FROM memory_pending WHERE n = ?";
const PUT = "INSERT OR REPLACE INTO memory_pending (n, seq, objects, deleted) VALUES (?, ?, ?, 0)";
const LIST = "SELECT n, seq, objects, deleted FROM memory_pending WHERE n > ? ORDER BY n LIMIT ?";
const HAS_UNSETTLED = "SELECT 1 AS found FROM memory_pending WHERE deleted = 0 LIMIT 1";
const DELETED = "UPDATE memory_pending SET deleted = 1 WHERE n = ? AND seq = ?";
const DONE = "DELETE FROM memory_pending WHERE n = ? AND seq = ?";
const REDERIVE = "INSERT OR IGNORE INTO memory_rederive (n) VALUES (?)";
/** Highest count that the state reports. */
const MOST_COUNTED = 1_000;
const COUNT = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM memory_pending LIMIT ${MOST_COUNTED})`;

type PendingRow = { n: number; seq: number; objects: string | null; deleted: number };

export interface PendingMemory {
  n: number;
  /** Increases with each note of the memory. Removal requires the `seq` that was read. */
  seq: number;
  objects: string[];
  /** The deletions ran once and must be repeated. The entry needs no other request. */
  isDeleted: boolean;
}

export class Pending {
  #hasEarlierEntries: boolean | undefined;

  constructor(private readonly database: SqlDatabase) {}

  /**
   * Reports whether an earlier instance of the actor left entries, because its requests may still take effect. Entries with `isDeleted` do not
   * count. Must run before this instance adds an entry.
   */
  hasEarlierEntries(): boolean {
    this.#hasEarlierEntries ??= this.database.all(HAS_UNSETTLED).length > 0;
    return this.#hasEarlierEntries;
  }

  /** Notes a memory, with objects to delete after the copies are up to date. */
  note(n: number, objects: readonly string[] = []): void {
    this.hasEarlierEntries();
    const [row] = this.database.all<PendingRow>(GET, n);
    const before = row === undefined ? [] : objectsOf(row.objects);
    const all = [...new Set([...before, ...objects])];
    this.database.run(PUT, n, (row?.seq ?? 0) + 1, all.length === 0 ? null : JSON.stringify(all));
  }

  /** Returns entries with a number above `after`, ascending. */
  list(after: number, limit: number): PendingMemory[] {
    return this.database.all<PendingRow>(LIST, after, limit).map(toPending);
  }

  find(n: number): PendingMemory | undefined {
    return this.database.all<PendingRow>(GET, n).map(toPending)[0];
  }

  done({ n, seq }: PendingMemory): void {
    this.database.run(DONE, n, seq);
  }

  /** Notes that the deletions of an entry ran once and must be repeated. */
  deleted({ n, seq }: PendingMemory): void {
    this.database.run(DELETED, n, seq);
  }

  /** Notes that the entries of an earlier instance were considered. */
  clearEarlierEntries(): void {
    this.#hasEarlierEntries = false;
  }

  rederive(n: number): void {
    this.database.run(REDERIVE, n);
  }

  /** Returns the number of entries, at most 1,000. */
  count(): number {
    return this.database.all<{ count: number }>(COUNT)[0]?.count ?? 0;
  }
}

function toPending({ n, seq, objects, deleted }: PendingRow): PendingMemory {
  return { n, seq, objects: objectsOf(objects), isDeleted: deleted === 1 };
}

function objectsOf(objects: string | null): string[] {
  // SAFETY: only `note` writes the column.
  return objects === null ? [] : (JSON.parse(objects) as string[]);
}
