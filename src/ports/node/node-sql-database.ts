/**
 * The `SqlDatabase` of Node: its own SQLite, in memory or in a file. Stores and cores run on it without a Durable Object. The
 * connection has the limits of the platform, so that statements work on both.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { ActorDatabase, SqlRow, SqlValue } from "../sql-database.ts";
import { checkSqlValues, refusePromise } from "../sql-values.ts";

/** The limits of a Durable Object's SQLite. */
const PLATFORM_LIMITS = {
  variableNumber: 100,
  sqlLength: 100_000,
  compoundSelect: 5,
  likePatternLength: 50,
};

export class NodeSqlDatabase implements ActorDatabase {
  private readonly database: DatabaseSync;
  private readonly statements = new Map<string, StatementSync>();
  /** Statements of readers that have ended. */
  private readonly readers = new Map<string, StatementSync>();
  private depth = 0;

  /** `path` is a file, or `:memory:`. */
  constructor(path = ":memory:") {
    this.database = new DatabaseSync(path, {
      enableForeignKeyConstraints: false,
      limits: PLATFORM_LIMITS,
    });
  }

  run(statement: string, ...values: SqlValue[]): void {
    checkSqlValues(values);
    this.prepared(statement).run(...values);
  }

  all<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Row[] {
    checkSqlValues(values);
    // SAFETY: the caller names the shape of its own constant statement's rows.
    return this.prepared(statement).all(...values) as Row[];
  }

  *each<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Generator<Row> {
    checkSqlValues(values);
    // Each reader has its own statement until it ends: another run of the statement would restart it.
    const reader = this.readers.get(statement) ?? this.database.prepare(statement);
    this.readers.delete(statement);
    try {
      // SAFETY: as in `all`.
      yield* reader.iterate(...values) as Iterable<Row>;
    } finally {
      this.readers.set(statement, reader);
    }
  }

  transaction<Result>(body: () => Result): Result {
    const level = this.depth;
    this.database.exec(level === 0 ? "BEGIN IMMEDIATE" : `SAVEPOINT level_${level}`);
    this.depth = level + 1;
    try {
      const result = refusePromise(body());
      this.database.exec(level === 0 ? "COMMIT" : `RELEASE level_${level}`);
      return result;
    } catch (error) {
      // SQLite itself may have rolled back, for example because the disk is full.
      if (this.database.isTransaction)
        this.database.exec(level === 0 ? "ROLLBACK" : `ROLLBACK TO level_${level}; RELEASE level_${level}`);
      throw error;
    } finally {
      this.depth = level;
    }
  }

  isInTransaction(): boolean {
    return this.depth > 0;
  }

  /** Closes the file. The database cannot be used afterwards. */
  close(): void {
    this.statements.clear();
    this.readers.clear();
    this.database.close();
  }

  private prepared(statement: string): StatementSync {
    const known = this.statements.get(statement);
    if (known !== undefined) return known;
    const fresh = this.database.prepare(statement);
    this.statements.set(statement, fresh);
    return fresh;
  }
}
