/** The storage of a Durable Object: its SQLite database, and its synchronous key-value storage in the same transactions. */
import { defined } from "../../shared/defined.ts";
import type { KeyValue } from "../key-value.ts";
import type { ActorDatabase, SqlRow, SqlValue } from "../sql-database.ts";
import { checkKey, checkSqlValues, refusePromise } from "../sql-values.ts";

/** The part of a Durable Object's storage that this file uses: `ctx.storage`, or a counting stand-in. */
export interface ActorStorage {
  readonly sql: Pick<SqlStorage, "exec">;
  readonly kv: SyncKvStorage;
  transactionSync<Result>(body: () => Result): Result;
}

/** Returns both halves of an actor's storage. */
export function durableStorage(storage: ActorStorage): { database: ActorDatabase; keyValue: KeyValue } {
  return { database: new DurableSqlDatabase(storage), keyValue: new DurableKeyValue(storage) };
}

/** Numbers of open transactions of this port, by storage: the platform does not report them. */
const depths = new WeakMap<object, number>();

/**
 * The `SqlDatabase` of a Durable Object, with one `exec` per call.
 *
 * @example new SqliteConversationStore(new DurableSqlDatabase(ctx.storage))
 */
export class DurableSqlDatabase implements ActorDatabase {
  constructor(private readonly storage: Pick<ActorStorage, "sql" | "transactionSync">) {}

  run(statement: string, ...values: SqlValue[]): void {
    // The cursor need not be drained: a statement that writes runs to its end before `exec` returns.
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
    const { storage } = this;
    const depth = depths.get(storage) ?? 0;
    depths.set(storage, depth + 1);
    try {
      return storage.transactionSync(() => refusePromise(body()));
    } finally {
      depths.set(storage, depth);
    }
  }

  isInTransaction(): boolean {
    return (depths.get(this.storage) ?? 0) > 0;
  }

  private exec(statement: string, values: SqlValue[]): SqlStorageCursor<Record<string, SqlStorageValue>> {
    checkSqlValues(values);
    return this.storage.sql.exec(statement, ...values);
  }
}

export class DurableKeyValue implements KeyValue {
  constructor(private readonly storage: Pick<ActorStorage, "kv">) {}

  get<Value>(key: string): Value | undefined {
    return this.storage.kv.get<Value>(key);
  }

  put<Value>(key: string, value: Value): void {
    checkKey(key);
    this.storage.kv.put(key, value);
  }

  delete(key: string): boolean {
    return this.storage.kv.delete(key);
  }

  list<Value>(prefix: string, limit: number, after?: string): [key: string, value: Value][] {
    return [...this.storage.kv.list<Value>({ prefix, limit, ...defined({ startAfter: after }) })];
  }
}

/** Replaces SQLite's buffers by the views that the port uses. */
function bytesInPlace(row: Record<string, unknown>): void {
  for (const column in row) {
    const value = row[column];
    if (value instanceof ArrayBuffer) row[column] = new Uint8Array(value);
  }
}
