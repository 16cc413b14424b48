/**
 * The command that moves a tenant's lists to another database. The decisions are in tenant-move.ts.
 *
 * LISTS-5  Any number of calls may take the steps of a move at once. A call stores a place only if the place that it has read is still
 *          stored. It writes and deletes rows in a database only while the row of the tenant in `tenant_databases` of the same database
 *          says so. A call that is late cannot replace this row by an older row.
 */
import type { Clock } from "../ports/clock.ts";
import type { ListsPlace } from "../protocol/lists-place.ts";
import { invalid } from "../shared/errors.ts";
import { migrate } from "./migrate.ts";
import { OTHER_TABLES, OWNED_TABLES } from "./owned-rows.ts";
import {
  databasesOf,
  FIRST_DATABASE,
  movingTo,
  TenantDatabases,
  type TenantPlace,
} from "./tenant-databases.ts";
import { afterCopy, afterDeletion, afterEmptying, nextMove } from "./tenant-move.ts";

/** Rows and characters of one slice. A row may exceed them. */
const SLICE_ROWS = 200;
const SLICE_BYTES = 1_000_000;
const DELETED_ROWS = 1_000;
const SLICES = 20;

const STAYS: readonly string[] = [
  ...["dramatis_migrations", "tenant_databases", "libraries", "definitions"],
  ...[
    "projects",
    "project_secrets",
    "repositories",
    "removed_repositories",
    "git_packs",
    "git_refs",
    "artifacts",
  ],
  ...["artifact_operations", "mcp_servers"],
];
const TABLES = [...Object.keys(OWNED_TABLES), ...Object.keys(OTHER_TABLES)]
  .filter((table) => !STAYS.includes(table))
  .sort();

const STORE = `INSERT INTO tenant_databases (tenant, name, target, left_name, copied, since)
SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE (?7 = 0) = NOT EXISTS (SELECT 1 FROM tenant_databases WHERE tenant = ?1)
ON CONFLICT DO UPDATE SET name = excluded.name, target = excluded.target, left_name = excluded.left_name,
  copied = excluded.copied, since = excluded.since
WHERE name = ?8 AND target IS ?9 AND left_name IS ?10 AND copied IS ?11 AND since = ?12
RETURNING tenant`;

/** Writes the row of a step: `?3` is the target of a copy, and `NULL` for a deletion. `DB` has the place itself. */
const BEGIN = `INSERT INTO tenant_databases (tenant, name, target, since) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET name = excluded.name, target = excluded.target, since = excluded.since
WHERE excluded.since > since`;
const END = "UPDATE tenant_databases SET target = NULL WHERE tenant = ?1 AND since = ?2";
/** `?1` is the tenant, `?2` the target, `?3` the begin of the step. */
const IN_STEP = "EXISTS (SELECT 1 FROM tenant_databases WHERE tenant = ?1 AND target IS ?2 AND since = ?3)";

type Value = string | number | null;

type Copying = TenantPlace & { target: string };

export class ListsMove {
  readonly databases: TenantDatabases;

  /** `databases`: `DB` and the further databases, by the names of their bindings. */
  constructor(
    databases: ReadonlyMap<string, D1Database>,
    private readonly clock: Pick<Clock, "now">,
  ) {
    this.databases = new TenantDatabases(databases, clock, (tenant) => this.#advance(tenant));
  }

  async read(tenant: string): Promise<ListsPlace> {
    return viewOf(await this.databases.read(tenant));
  }

  /**
   * Moves a tenant's lists towards a database, for a few seconds. Call it again until the answer has no `continueInMs`. Throws
   * `INVALID_INPUT` for a database that the Worker lacks, and `CONFLICT` during a move to another database.
   */
  async move(tenant: string, target: string): Promise<ListsPlace> {
    if (!this.databases.databases.has(target)) {
      const names = [...this.databases.databases.keys()].join(", ");
      const message = `The Worker has no D1 binding "${target}". It has: ${names}.`;
      throw invalid(message, { errors: [{ path: "/database", message }] });
    }
    for (let slice = 0; slice < SLICES; slice++) {
      const place = await this.databases.read(tenant);
      const step = nextMove(place, target, this.clock.now());
      if (step.type === "done") break;
      if (step.type === "wait") return viewOf(place, step.until - this.clock.now());
      if (step.type === "store") await this.#store(tenant, place, step.place);
      else if (place !== null && step.type === "copy") await this.#copy(tenant, { ...place, target });
      else if (place !== null && step.type === "delete" && (await this.#delete(tenant, place, step.from)))
        await this.#store(tenant, place, afterDeletion(place));
    }
    return viewOf(await this.databases.read(tenant), 0);
  }

  async #advance(tenant: string): Promise<void> {
    const moving = movingTo(await this.databases.read(tenant));
    if (moving !== null) await this.move(tenant, moving);
  }

  /** Takes the next step of a copy: it empties the target, copies a slice of rows, or ends the copy. */
  async #copy(tenant: string, place: Copying): Promise<void> {
    const { name, target: to, since, copied } = place;
    const target = this.databases.named(to);
    await migrate(target);
    const store = (after: string | null) =>
      this.#store(tenant, place, afterCopy(place, after, this.clock.now()));
    const [table, key] =
      copied === null ? [undefined, undefined] : (JSON.parse(copied) as [string, Value[]?]);
    // The emptying and the copy each begin with their own row.
    const isBegin = table === undefined || (table === TABLES[0] && key === undefined);
    if (isBegin && to !== FIRST_DATABASE) await target.prepare(BEGIN).bind(tenant, name, to, since).run();
    if (table === undefined) {
      for (const old of TABLES)
        await target
          .prepare(`DELETE FROM "${old}" WHERE tenant = ?1 AND ${IN_STEP}`)
          .bind(tenant, to, since)
          .run();
      return this.#store(tenant, place, afterEmptying(place, JSON.stringify([TABLES[0]])));
    }
    const source = this.databases.named(name);
    const { columns, keys } = await columnsOf(source, table);
    const { rows, more } = await slice(source, table, { tenant, columns, keys, after: key });
    const insert = target.prepare(
      `INSERT OR REPLACE INTO "${table}" (${quoted(columns)})
SELECT ${columns.map((_, index) => `?${index + 4}`).join(", ")} WHERE ${IN_STEP}`,
    );
    const inserts = rows.map((row) =>
      insert.bind(tenant, to, since, ...columns.map((of) => row[of] ?? null)),
    );
    if (inserts.length > 0) await target.batch(inserts);
    const last = rows.at(-1);
    if (more && last !== undefined)
      return store(JSON.stringify([table, keys.map((column) => last[column] ?? null)]));
    const next = TABLES[TABLES.indexOf(table) + 1];
    if (next !== undefined) return store(JSON.stringify([next]));
    // After this statement, no call writes copied rows.
    if (to !== FIRST_DATABASE) await target.prepare(END).bind(tenant, since).run();
    return store(null);
  }

  /** Deletes a slice of the old rows. Returns `true` if no row remains. */
  async #delete(tenant: string, { name, since }: TenantPlace, from: string): Promise<boolean> {
    const database = this.databases.named(from);
    if (from !== FIRST_DATABASE) await database.prepare(BEGIN).bind(tenant, name, null, since).run();
    for (const table of TABLES) {
      const list = quoted((await columnsOf(database, table)).keys);
      const { meta } = await database
        .prepare(
          `DELETE FROM "${table}" WHERE tenant = ?1 AND (${list}) IN
(SELECT ${list} FROM "${table}" WHERE tenant = ?1 ORDER BY ${list} LIMIT ?4) AND ${IN_STEP}`,
        )
        .bind(tenant, null, since, DELETED_ROWS)
        .run();
      if (meta.changes > 0) return false;
    }
    return true;
  }

  /** Stores a place, unless another call has stored one. */
  async #store(tenant: string, before: TenantPlace | null, place: TenantPlace): Promise<void> {
    const { name, target, left, copied, since } = place;
    const old = before ?? { name: "", target: null, left: null, copied: null, since: 0 };
    await this.databases
      .named(FIRST_DATABASE)
      .prepare(STORE)
      .bind(
        ...[tenant, name, target, left, copied, since, before === null ? 0 : 1],
        ...[old.name, old.target, old.left, old.copied, old.since],
      )
      .all();
  }
}

/** Returns the next rows of a tenant in a table, up to `SLICE_BYTES`, and whether more follow. */
async function slice(
  database: D1Database,
  table: string,
  { tenant, columns, keys, after }: Slice,
): Promise<{ rows: Record<string, Value>[]; more: boolean }> {
  const list = quoted(keys);
  const places = keys.map((_, index) => `?${index + 3}`).join(", ");
  const size = columns.map((column) => `IFNULL(LENGTH("${column}"), 0)`).join(" + ");
  const { results } = await database
    .prepare(
      `SELECT * FROM (
  SELECT *, COUNT(*) OVER () AS "slice rows", SUM(${size}) OVER (ORDER BY ${list}) - (${size}) AS "slice bytes" FROM (
    SELECT * FROM "${table}" WHERE tenant = ?1 ${after === undefined ? "" : `AND (${list}) > (${places})`}
    ORDER BY ${list} LIMIT ?2
  )
) WHERE "slice bytes" < ${SLICE_BYTES} ORDER BY ${list}`,
    )
    .bind(tenant, SLICE_ROWS, ...(after ?? []))
    .all<Record<string, Value>>();
  const found = Number(results[0]?.["slice rows"] ?? 0);
  return { rows: results, more: results.length < found || found === SLICE_ROWS };
}

interface Slice {
  tenant: string;
  columns: readonly string[];
  keys: readonly string[];
  /** The key of the last row before the slice. */
  after: readonly Value[] | undefined;
}

/** Returns the columns of a table, and the columns of its primary key in order. */
async function columnsOf(
  database: D1Database,
  table: string,
): Promise<{ columns: string[]; keys: string[] }> {
  const { results } = await database
    .prepare(`PRAGMA table_info("${table}")`)
    .all<{ name: string; pk: number }>();
  const keys = results.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  return { columns: results.map(({ name }) => name), keys: keys.map(({ name }) => name) };
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(", ");
}

function viewOf(place: TenantPlace | null, continueInMs = 0): ListsPlace {
  const { name, target } = place ?? { name: FIRST_DATABASE, target: null };
  return {
    database: name,
    ...(target === null ? {} : { target }),
    ...(movingTo(place) === null ? {} : { continueInMs: Math.max(0, continueInMs) }),
  };
}

/** Places are known to all actors of an isolate. */
const opened = new WeakMap<D1Database, ListsMove>();

/** Returns the databases of a Worker and the command that moves lists between them; `null` without the binding `DB`. */
export function listsMoveOf(env: object, clock: Pick<Clock, "now">): ListsMove | null {
  const databases = databasesOf(env);
  const first = databases?.get(FIRST_DATABASE);
  if (databases === null || first === undefined) return null;
  const lists = opened.get(first) ?? new ListsMove(databases, clock);
  opened.set(first, lists);
  return lists;
}
