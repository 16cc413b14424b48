/**
 * Migrates a D1 database to this code's schema.
 *
 * MIGRATE-1  Migrations run in order, each in one transaction with the row that records it. An interrupted run continues with the first
 *            unrecorded migration.
 * MIGRATE-2  Any number of isolates may migrate at once. The record's key lets one of them win, and the others continue.
 * MIGRATE-3  Recorded migrations of a newer release are ignored.
 */
import { systemClock } from "../ports/system.ts";
import { MIGRATIONS, type Migration } from "./d1-tables.ts";

/** Databases that are up to date. Not a promise, which must not outlive the request that created it. */
const current = new WeakSet<D1Database>();

/** Applies missing migrations. Costs one read per isolate. */
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
      .bind(name, systemClock.now());
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
