/**
 * Counts the storage operations of an actor, for tests and benchmarks. Counting wraps the ports, so unwrapped ports
 * have no overhead.
 *
 * COST-1  A call of a statement counts as one statement, and so does a call of a key.
 * COST-2  A put or a delete of a key counts as one row written.
 */
import type { KeyValue } from "../../src/ports/key-value.ts";
import type { SqlDatabase } from "../../src/ports/sql-database.ts";

export interface Cost {
  statements: number;
  rowsWritten: number;
  rowsRead: number;
}

/** Row counts of one statement, complete once its rows are read. */
export interface RowCounts {
  readonly rowsWritten: number;
  readonly rowsRead: number;
}

export class CostCounter {
  private statements = 0;
  private keysWritten = 0;
  private cursors: RowCounts[] = [];

  /** Counts since construction or the last `reset`. Row counts are as complete as the database reports them. */
  get cost(): Cost {
    const cost = { statements: this.statements, rowsWritten: this.keysWritten, rowsRead: 0 };
    for (const { rowsWritten, rowsRead } of this.cursors) {
      cost.rowsWritten += rowsWritten;
      cost.rowsRead += rowsRead;
    }
    return cost;
  }

  reset(): void {
    this.statements = 0;
    this.keysWritten = 0;
    this.cursors = [];
  }

  /** Records a statement. `cursor` has its row counts later. */
  countStatement(cursor?: RowCounts): void {
    this.statements += 1;
    if (cursor !== undefined) this.cursors.push(cursor);
  }

  countKeyRead(): void {
    this.statements += 1;
  }

  countKeyWrite(): void {
    this.statements += 1;
    this.keysWritten += 1;
  }
}

/** Wraps ports so that they count into `counter`. For a database without row counts, only rows of keys count. */
export function countingDatabase(
  db: SqlDatabase,
  kv: KeyValue,
  counter: CostCounter,
): { db: SqlDatabase; kv: KeyValue } {
  return {
    db: {
      run: (statement, ...values) => {
        counter.countStatement();
        db.run(statement, ...values);
      },
      all: (statement, ...values) => {
        counter.countStatement();
        return db.all(statement, ...values);
      },
      each: (statement, ...values) => {
        counter.countStatement();
        return db.each(statement, ...values);
      },
      transaction: (body) => db.transaction(body),
    },
    kv: {
      get: (key) => {
        counter.countKeyRead();
        return kv.get(key);
      },
      put: (key, value) => {
        counter.countKeyWrite();
        kv.put(key, value);
      },
      delete: (key) => {
        counter.countKeyWrite();
        return kv.delete(key);
      },
      list: (prefix, limit) => {
        counter.countKeyRead();
        return kv.list(prefix, limit);
      },
    },
  };
}
