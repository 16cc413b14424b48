/** All rows of a database, as text. A virtual table has its content in tables of its own. */
import type { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";

const TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'";

export function rowsOf(database: NodeSqlDatabase): { table: string; row: string }[] {
  const tables = database.all<{ name: string }>(TABLES);
  return tables.flatMap(({ name: table }) =>
    database.all(`SELECT * FROM "${table}"`).map((row) => ({ table, row: JSON.stringify(row) })),
  );
}
