/**
 * The SQLite database an actor owns, as the stores see it. One call is one statement, so statements can be
 * counted at this port, and a fault can be injected at it.
 *
 * SQL-1  `transaction` is all or nothing, and key-value writes of the same actor roll back with it.
 * SQL-2  A bound value comes back exactly as it went in. Values that a backend would alter in silence (booleans,
 *        integers beyond 2^53, strings with lone surrogates) are refused with `INVALID_INPUT`.
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
   * Runs one statement and yields its rows as they are read: a consumer that stops early reads no further rows.
   * Run no other statement while iterating.
   */
  each<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Iterable<Row>;
  /** Runs `body` in one transaction; a throw rolls back every statement and key-value write made in it. */
  transaction<Result>(body: () => Result): Result;
}
