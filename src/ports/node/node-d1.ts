/** The part of D1 that this runtime uses, on the SQLite of Node. */
import type { SqlValue } from "../sql-database.ts";
import type { NodeSqlDatabase } from "./node-sql-database.ts";

class Statement {
  constructor(
    private readonly database: NodeSqlDatabase,
    private readonly sql: string,
    private readonly values: SqlValue[] = [],
  ) {}

  bind(...values: SqlValue[]): Statement {
    return new Statement(this.database, this.sql, values);
  }

  execute() {
    return { results: this.database.all(this.sql, ...this.values) };
  }

  async run() {
    return this.execute();
  }

  async all() {
    return this.execute();
  }
}

export function nodeD1(database: NodeSqlDatabase): D1Database {
  const stand = {
    prepare: (sql: string) => new Statement(database, sql),
    batch: async (statements: Statement[]) =>
      database.transaction(() => statements.map((statement) => statement.execute())),
  };
  // SAFETY: the runtime uses these two methods only.
  return stand as unknown as D1Database;
}
