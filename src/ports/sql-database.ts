/**
 * The SQLite database of an actor. One call is one statement, so tests can count statements and inject faults here.
 *
 * SQL-1  `transaction` is all or nothing, and key-value writes of the same actor roll back with it. A nested transaction commits only with
 *        the outer transaction. If it throws, its own writes roll back.
 * SQL-2  A bound value is read back unchanged. Values that a backend would silently change (booleans, `NaN`, integers beyond 2^53, strings
 *        with lone surrogates) are refused with `INVALID_INPUT`. Values above 2,000,000 bytes, the platform's limit, are refused with
 *        `TOO_LARGE`. A number bound outside a typed column is a real, and `-0` may become `0`.
 */
export type SqlValue = string | number | null | Uint8Array;

/** One row of a result; columns by name. */
export type SqlRow = Record<string, SqlValue>;

export interface SqlDatabase {
  /** Runs one statement and discards its rows. */
  run(statement: string, ...values: SqlValue[]): void;
  /** Runs one statement and returns all of its rows. Limit their number in the statement. */
  all<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Row[];
  /**
   * Runs one statement at the first iteration and yields its rows as they are read: a consumer that stops early reads no
   * further rows. A table cannot be dropped while a reader of it is unfinished.
   */
  each<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Iterable<Row>;
  /**
   * Runs `body` in one transaction. A throw rolls back all of its statements and key-value writes. Throws `INVALID_INPUT` if
   * `body` returns a promise.
   */
  transaction<Result>(body: () => Result): Result;
}

export interface ActorDatabase extends SqlDatabase {
  /** Reports whether a transaction of this port is open on the same storage. */
  isInTransaction(): boolean;
}
