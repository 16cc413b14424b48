/**
 * The definitions of one tenant in D1.
 *
 * DEFS-1  The versions of a definition are numbered from 1 without a gap, even with concurrent writers. A number never
 *         changes its meaning.
 * DEFS-2  Equal content has one version.
 * DEFS-3  Every statement names one tenant.
 * DEFS-4  If the database fails, or does not answer within ten seconds, methods throw `UNAVAILABLE`, retriable.
 */
import { type DefinitionKind, type DefinitionTypes, kindName } from "../library/definitions/definition.ts";
import type { DefinitionKey, LibraryReference } from "../library/definitions/reference.ts";
import type {
  DefinitionStore,
  DefinitionVersion,
  LibraryView,
  PublishedVersion,
  UnversionedDefinition,
} from "../library/registry/definition-source.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/system.ts";
import { defined } from "../shared/defined.ts";
import { conflict, forbidden, unavailable } from "../shared/errors.ts";
import {
  encodeCursor,
  type Listed,
  type ListRange,
  listRange,
  type Page,
  type PageOptions,
} from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import { toIso } from "../shared/time.ts";
import {
  ADD_LIBRARY,
  ADD_VERSION,
  contentList,
  definitionLists,
  FIND_CONTENT,
  FIND_LATEST,
  FIND_LIBRARY,
  FIND_PUBLISHED,
  FIND_VERSION,
  LIST_DEFINITIONS,
  LIST_IDS,
  LIST_LIBRARIES,
  LIST_VERSIONS,
  MAX_VERSIONS,
  PUBLISH,
} from "./definition-statements.ts";
import { inTime } from "./in-time.ts";
import { migrate } from "./migrate.ts";

type DefinitionRow = {
  library: string;
  id: string;
  version: number;
  hash: string;
  owner: string;
  created_at: number;
  definition: string;
};
type ListedRow = DefinitionRow & { position_at: number; position_id: string; more: number };
type LibraryRow = { id: string; owner: string; created_at: number };
type PublishedRow = { position: number; version: number; created_at: number };
type Value = string | number;
type Query = [statement: string, values: Value[]];

/** Cheap to make. The first use in an isolate migrates the database. */
export class D1Definitions implements DefinitionStore {
  readonly #database: D1Database;
  readonly #tenant: string;
  readonly #clock: Pick<Clock, "now" | "timer">;

  constructor(database: D1Database, tenant: string, clock: Pick<Clock, "now" | "timer"> = systemClock) {
    this.#database = database;
    this.#tenant = tenant;
    this.#clock = clock;
  }

  async library(id: string): Promise<LibraryView | null> {
    const [row] = await this.#rows<LibraryRow>(FIND_LIBRARY, [id]);
    return row === undefined ? null : toLibrary(row);
  }

  async libraries({ order, limit, after }: ListRange): Promise<Listed<LibraryView>[]> {
    const values = [after.createdAt, after.id, limit + 1];
    const rows = await this.#rows<LibraryRow>(LIST_LIBRARIES[order], values);
    return rows.map((row) => ({ key: { createdAt: row.created_at, id: row.id }, item: toLibrary(row) }));
  }

  async find<Kind extends DefinitionKind>(kind: Kind, { library, id, version }: LibraryReference) {
    const key = [library, kind, id];
    const [row] =
      version === undefined
        ? await this.#rows<DefinitionRow>(FIND_LATEST, key)
        : await this.#rows<DefinitionRow>(FIND_VERSION, [...key, version]);
    return row === undefined ? null : toVersion<Kind>(row);
  }

  async list<Kind extends DefinitionKind>(kind: Kind, library: string, options: PageOptions = {}) {
    const { order, limit, after } = listRange(options);
    const values = [library, kind, after.createdAt, after.id, limit];
    return toPage<Kind>(await this.#rows<ListedRow>(LIST_DEFINITIONS[order], values));
  }

  async ids(kind: DefinitionKind, library: string, limit: number) {
    const rows = await this.#rows<{ id: string }>(LIST_IDS, [library, kind, limit]);
    return rows.map(({ id }) => id);
  }

  async versions<Kind extends DefinitionKind>(
    kind: Kind,
    { library, id }: DefinitionKey,
    options: PageOptions = {},
  ) {
    const { order, limit, after } = listRange(options);
    const values = [library, kind, id, after.createdAt, limit];
    return toPage<Kind>(await this.#rows<ListedRow>(LIST_VERSIONS[order], values));
  }

  async add<Kind extends DefinitionKind>(added: UnversionedDefinition<Kind>, author: Principal) {
    const { library, kind, id, hash, definition } = added;
    const { subject, roles } = author;
    const isAdmin = roles.includes("admin");
    const key = [library, kind, id, hash];
    const now = this.#clock.now();
    const [, created, [row], [owned]] = await this.#batch<
      [never[], { version: number }[], DefinitionRow[], LibraryRow[]]
    >([
      [ADD_LIBRARY, [library, subject, now]],
      [ADD_VERSION, [...key, subject, now, JSON.stringify(definition), isAdmin ? 1 : 0]],
      [FIND_CONTENT, key],
      [FIND_LIBRARY, [library]],
    ]);
    if (owned === undefined)
      throw conflict(
        `Another library has the id "${library}" that differs only in case or in "_" and "-". Use its id, or choose a different id.`,
      );
    if (!isAdmin && owned.owner !== subject)
      throw forbidden(
        `The library "${library}" belongs to another author. Only they and administrators may add to it.`,
      );
    if (row === undefined)
      throw conflict(
        `The ${kindName(kind)} "${library}/${id}" has ${MAX_VERSIONS} versions, which is the maximum. Continue under another id.`,
      );
    return { version: toVersion<Kind>(row), created: created.length > 0 };
  }

  async publish(definitions: readonly UnversionedDefinition[]): Promise<PublishedVersion[]> {
    const find: Query = [FIND_PUBLISHED, [contentList(definitions)]];
    let rows = await this.#rows<PublishedRow>(...find);
    if (rows.length < definitions.length) {
      const known = new Set(rows.map(({ position }) => position));
      const missing = definitions.filter((_, index) => !known.has(index));
      const now = this.#clock.now();
      const adds = definitionLists(missing).map((list): Query => [PUBLISH, [list, now]]);
      const results = await this.#batch<PublishedRow[][]>([...adds, find]);
      rows = results.at(-1) ?? [];
    }
    return rows.map(({ version, created_at }) => ({ version, createdAt: toIso(created_at) }));
  }

  async #rows<Row>(statement: string, values: Value[]): Promise<Row[]> {
    const [rows] = await this.#batch<[Row[]]>([[statement, values]]);
    return rows;
  }

  /** Runs the queries in one transaction, each with the tenant as its first value. */
  async #batch<Results extends unknown[][]>(queries: Query[]): Promise<Results> {
    try {
      const results = await inTime(this.#clock, async () => {
        await migrate(this.#database);
        return this.#database.batch(
          queries.map(([statement, values]) =>
            this.#database.prepare(statement).bind(this.#tenant, ...values),
          ),
        );
      });
      // SAFETY: the caller names the columns of its statements.
      return results.map((result) => result.results) as Results;
    } catch (cause) {
      console.error("The registry cannot be reached:", cause);
      throw unavailable("The registry of libraries does not answer right now. Try again in a moment.", {
        retriable: true,
        cause,
      });
    }
  }
}

function toPage<Kind extends DefinitionKind>(rows: readonly ListedRow[]): Page<DefinitionVersion<Kind>> {
  const last = rows.at(-1);
  const nextCursor =
    last?.more === 1 ? encodeCursor({ createdAt: last.position_at, id: last.position_id }) : undefined;
  return { items: rows.map((row) => toVersion<Kind>(row)), ...defined({ nextCursor }) };
}

function toVersion<Kind extends DefinitionKind>(row: DefinitionRow): DefinitionVersion<Kind> {
  const { library, id, version, hash, owner, created_at } = row;
  return {
    library,
    id,
    version,
    hash,
    // SAFETY: only `add` and `publish` write this column, from a definition of the row's kind.
    definition: JSON.parse(row.definition) as DefinitionTypes[Kind],
    // Deployments write an empty owner.
    owner: owner === "" ? null : owner,
    createdAt: toIso(created_at),
  };
}

function toLibrary({ id, owner, created_at }: LibraryRow): LibraryView {
  return { id, source: "api", owner, createdAt: toIso(created_at) };
}
