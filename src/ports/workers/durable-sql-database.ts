/** The `SqlDatabase` of a Durable Object: its own SQLite, one `exec` a call. */
import type { SqlDatabase, SqlRow, SqlValue } from "../sql-database.ts";
import { checkSqlValues, refusePromise } from "../sql-values.ts";
import type { ActorStorage } from "./actor-storage.ts";

export class DurableSqlDatabase implements SqlDatabase {
  constructor(private readonly storage: Pick<ActorStorage, "sql" | "transactionSync">) {}

  run(statement: string, ...values: SqlValue[]): void {
    // Draining the cursor is not needed: a statement that writes runs to its end before `exec` returns.
    this.exec(statement, values);
  }

  all<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Row[] {
    const rows = this.exec(statement, values).toArray();
    for (const row of rows) bytesInPlace(row);
    // SAFETY: the caller names the shape of its own constant statement's rows; bytes are views after the loop.
    return rows as unknown as Row[];
  }

  *each<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Generator<Row> {
    for (const row of this.exec(statement, values)) {
      bytesInPlace(row);
      // SAFETY: as in `all`.
      yield row as unknown as Row;
    }
  }

  transaction<Result>(body: () => Result): Result {
    return this.storage.transactionSync(() => refusePromise(body()));
  }

  private exec(statement: string, values: SqlValue[]): SqlStorageCursor<Record<string, SqlStorageValue>> {
    checkSqlValues(values);
    return this.storage.sql.exec(statement, ...values);
  }
}

/** SQLite's bytes come as buffers here; the port speaks of views. */
function bytesInPlace(row: Record<string, unknown>): void {
  for (const column in row) {
    const value = row[column];
    if (value instanceof ArrayBuffer) row[column] = new Uint8Array(value);
  }
}
