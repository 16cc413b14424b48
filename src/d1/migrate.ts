/**
 * Brings a D1 database to the schema this code needs.
 *
 * MIGRATE-1  Migrations run in order, each in one transaction with the row that records it: what was interrupted goes on
 *            with the first that is not recorded.
 * MIGRATE-2  Any number of isolates may migrate at once: the record's key lets one of them win, the others go on.
 * MIGRATE-3  Migrations that are recorded and unknown here, those of a newer release, are left alone.
 */
import { MIGRATIONS, type Migration } from "./schema.ts";

/** Databases known to be current. Only the fact is shared: a promise must not outlive the request that made it. */
const current = new WeakSet<D1Database>();

/** Costs one read per isolate, and nothing after that. */
export async function migrate(
  database: D1Database,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  if (current.has(database)) return;
  const applied = await appliedMigrations(database);
  for (const { name, statements } of migrations) {
    if (applied.has(name)) continue;
    const record = database
      .prepare("INSERT INTO dramatis_migrations (name, applied_at) VALUES (?1, ?2)")
      .bind(name, Date.now());
    try {
      await database.batch([record, ...statements.map((statement) => database.prepare(statement))]);
    } catch (error) {
      if (!(await appliedMigrations(database)).has(name)) throw error;
    }
  }
  current.add(database);
}

async function appliedMigrations(database: D1Database): Promise<Set<string>> {
  const results = await database.batch<{ name: string }>([
    database.prepare(
      `CREATE TABLE IF NOT EXISTS dramatis_migrations (
        name TEXT PRIMARY KEY,
        applied_at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
    ),
    database.prepare("SELECT name FROM dramatis_migrations"),
  ]);
  return new Set(results.flatMap(({ results }) => results.map(({ name }) => name)));
}
