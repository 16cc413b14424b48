/** Marks memories with pending copies, with the objects to delete after the copies are up to date. */
import type { SqlDatabase } from "../../ports/sql-database.ts";

const GET = "SELECT n, seq, gone, deleted FROM memory_pending WHERE n = ?";
const PUT = "INSERT OR REPLACE INTO memory_pending (n, seq, gone, deleted) VALUES (?, ?, ?, 0)";
const LIST = "SELECT n, seq, gone, deleted FROM memory_pending WHERE n > ? ORDER BY n LIMIT ?";
const HAS_UNSETTLED = "SELECT 1 AS found FROM memory_pending WHERE deleted = 0 LIMIT 1";
const DELETED = "UPDATE memory_pending SET deleted = 1 WHERE n = ? AND seq = ?";
const DONE = "DELETE FROM memory_pending WHERE n = ? AND seq = ?";
const REDERIVE = "INSERT OR IGNORE INTO memory_rederive (n) VALUES (?)";
/** Highest count that the state reports. */
const MOST_COUNTED = 1_000;
const COUNT = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM memory_pending LIMIT ${MOST_COUNTED})`;

type PendingRow = { n: number; seq: number; gone: string | null; deleted: number };

export interface PendingMemory {
  n: number;
  /** Increases with each mark of the memory. Removal requires the `seq` that was read. */
  seq: number;
  objects: string[];
  /** The deletions ran once and must be repeated. The mark needs no other request. */
  isDeleted: boolean;
}

export class Pending {
  #hasEarlierMarks: boolean | undefined;

  constructor(private readonly database: SqlDatabase) {}

  /**
   * Reports whether an earlier instance of the actor left marks, because its requests may still take effect. Marks with `isDeleted` do not
   * count. Must run before this instance adds a mark.
   */
  hasEarlierMarks(): boolean {
    this.#hasEarlierMarks ??= this.database.all(HAS_UNSETTLED).length > 0;
    return this.#hasEarlierMarks;
  }

  /** Marks a memory, with objects to delete after the copies are up to date. */
  note(n: number, objects: readonly string[] = []): void {
    this.hasEarlierMarks();
    const [row] = this.database.all<PendingRow>(GET, n);
    const before = row === undefined ? [] : objectsOf(row.gone);
    const all = [...new Set([...before, ...objects])];
    this.database.run(PUT, n, (row?.seq ?? 0) + 1, all.length === 0 ? null : JSON.stringify(all));
  }

  /** Returns marks with a number above `after`, ascending. */
  list(after: number, limit: number): PendingMemory[] {
    return this.database.all<PendingRow>(LIST, after, limit).map(toPending);
  }

  find(n: number): PendingMemory | undefined {
    return this.database.all<PendingRow>(GET, n).map(toPending)[0];
  }

  done({ n, seq }: PendingMemory): void {
    this.database.run(DONE, n, seq);
  }

  /** Notes that the deletions of a mark ran once and must be repeated. */
  deleted({ n, seq }: PendingMemory): void {
    this.database.run(DELETED, n, seq);
  }

  /** Notes that the marks of an earlier instance were considered. */
  clearEarlierMarks(): void {
    this.#hasEarlierMarks = false;
  }

  /** Marks a memory for rederivation. */
  rederive(n: number): void {
    this.database.run(REDERIVE, n);
  }

  /** Returns the number of marks, at most 1,000. */
  count(): number {
    return this.database.all<{ count: number }>(COUNT)[0]?.count ?? 0;
  }
}

function toPending({ n, seq, gone, deleted }: PendingRow): PendingMemory {
  return { n, seq, objects: objectsOf(gone), isDeleted: deleted === 1 };
}

function objectsOf(gone: string | null): string[] {
  // SAFETY: only `note` writes the column.
  return gone === null ? [] : (JSON.parse(gone) as string[]);
}
