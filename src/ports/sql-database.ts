/**
 * The SQLite database an actor owns, as the stores see it. One call is one statement, so statements can be
 * counted at this port, and a fault can be injected at it.
 *
 * SQL-1  `transaction` is all or nothing, and key-value writes of the same actor roll back with it. One inside another
 *        commits with the outer one only; if it throws, its own writes are taken back.
 * SQL-2  A bound value comes back exactly as it went in. Values that a backend would alter in silence (booleans, `NaN`,
 *        integers beyond 2^53, strings with lone surrogates) are refused with `INVALID_INPUT`, and those above
 *        2 000 000 bytes, the platform's limit, with `TOO_LARGE`. A number bound outside a typed column is a real, and
 *        `-0` may come back as `0`.
 */
export type SqlValue = string | number | null | Uint8Array;

/** One row of a result; columns by name. */
export type SqlRow = Record<string, SqlValue>;

export interface SqlDatabase {
  /** Runs one statement and discards what it returns. */
  run(statement: string, ...values: SqlValue[]): void;
  /** Runs one statement and returns all of its rows. Bound the statement with LIMIT. */
  all<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Row[];
  /**
   * Runs one statement when first asked and yields its rows as they are read: a consumer that stops early reads no
   * further rows. A table cannot be dropped while a reader of it is unfinished.
   */
  each<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Iterable<Row>;
  /**
   * Runs `body` in one transaction; a throw rolls back every statement and key-value write made in it. A body that
   * returns a promise is refused with `INVALID_INPUT`.
   */
  transaction<Result>(body: () => Result): Result;
}
