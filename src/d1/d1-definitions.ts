/**
 * The versions of definitions, in D1.
 *
 * DEFS-1  A definition's versions are numbered from 1 without a gap, whoever writes at once; a number never changes what it
 *         means.
 * DEFS-2  Equal content has one version.
 * DEFS-3  Every statement names one tenant.
 * DEFS-4  A database that fails, or does not answer for ten seconds, is `UNAVAILABLE`, retriable.
 */

import type {
  DefinitionKey,
  DefinitionStore,
  NewVersion,
  PublishedVersion,
  StoredDefinition,
  StoredLibrary,
} from "../library/definition-store.ts";
import { type DefinitionKind, type DefinitionTypes, KIND_NAMES } from "../library/kinds.ts";
import type { CodeDefinition } from "../library/registry.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/system.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError } from "../shared/errors.ts";
import { decodeCursor, encodeCursor, type ListKey, type Page, type PageOptions } from "../shared/page.ts";
import {
  ADD_LIBRARY,
  ADD_VERSION,
  FIND_CONTENT,
  FIND_LATEST,
  FIND_LIBRARY,
  FIND_PUBLISHED,
  FIND_VERSION,
  LIST_DEFINITIONS,
  LIST_LIBRARIES,
  LIST_VERSIONS,
  MAX_VERSIONS,
  PUBLISH,
} from "./definition-statements.ts";
import { inTime } from "./in-time.ts";
import { migrate } from "./migrate.ts";
import { namesOf, pieces } from "./published-lists.ts";

const DEFAULT_LIMIT = 50;

type DefinitionRow = {
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

/** Cheap to make; the database is brought to its schema by the first use in an isolate. */
export class D1Definitions implements DefinitionStore {
  readonly #database: D1Database;

  readonly #clock: Pick<Clock, "timer">;

  constructor(database: D1Database, clock: Pick<Clock, "timer"> = systemClock) {
    this.#database = database;
    this.#clock = clock;
  }

  get identity(): object {
    return this.#database;
  }

  async find<Kind extends DefinitionKind>(key: DefinitionKey<Kind>, version?: number) {
    const values = valuesOf(key);
    const [rows] = await this.#ask<DefinitionRow>([
      version === undefined ? [FIND_LATEST, values] : [FIND_VERSION, [...values, version]],
    ]);
    const [row] = rows ?? [];
    return row === undefined ? null : toDefinition<Kind>(row);
  }

  async add<Kind extends DefinitionKind>(key: DefinitionKey<Kind>, version: NewVersion) {
    const { hash, owner, now, overrides } = version;
    const definition = JSON.stringify(version.definition);
    const values = valuesOf(key);
    const results = await this.#batch([
      [ADD_LIBRARY, [key.tenant, key.library, owner, now]],
      [ADD_VERSION, [...values, hash, owner, now, definition, overrides ? 1 : 0]],
      [FIND_CONTENT, [...values, hash]],
      [FIND_LIBRARY, [key.tenant, key.library]],
    ]);
    // SAFETY: these are the columns that the two statements name.
    const [row] = (results[2]?.results ?? []) as DefinitionRow[];
    const [library] = (results[3]?.results ?? []) as LibraryRow[];
    if (!overrides && library?.owner !== owner) {
      throw new DramatisError(
        "FORBIDDEN",
        `The library "${key.library}" was made by somebody else; only they and administrators may write to it.`,
      );
    }
    if (row === undefined) {
      throw new DramatisError(
        "CONFLICT",
        `The ${KIND_NAMES[key.kind]} "${key.library}/${key.id}" has ${MAX_VERSIONS} versions, which is as many as it may have. Go on under another id.`,
      );
    }
    return { stored: toDefinition<Kind>(row), created: (results[1]?.results ?? []).length > 0 };
  }

  async list<Kind extends DefinitionKind>(
    { tenant, library, kind }: Omit<DefinitionKey<Kind>, "id">,
    options: PageOptions = {},
  ): Promise<Page<StoredDefinition<Kind>>> {
    const { order, limit, after } = range(options);
    const values = [tenant, library, kind, after.createdAt, after.id, limit];
    return this.#page<Kind>(LIST_DEFINITIONS[order], values);
  }

  async versions<Kind extends DefinitionKind>(
    key: DefinitionKey<Kind>,
    options: PageOptions = {},
  ): Promise<Page<StoredDefinition<Kind>>> {
    const { order, limit, after } = range(options);
    return this.#page<Kind>(LIST_VERSIONS[order], [...valuesOf(key), after.createdAt, limit]);
  }

  async library(tenant: string, id: string): Promise<StoredLibrary | null> {
    const [rows] = await this.#ask<LibraryRow>([[FIND_LIBRARY, [tenant, id]]]);
    const [row] = rows ?? [];
    return row === undefined ? null : toLibrary(row);
  }

  async libraries(
    tenant: string,
    { order, limit, after }: { order: "asc" | "desc"; limit: number; after: ListKey },
  ): Promise<StoredLibrary[]> {
    const [rows = []] = await this.#ask<LibraryRow>([
      [LIST_LIBRARIES[order], [tenant, after.createdAt, after.id, limit]],
    ]);
    return rows.map(toLibrary);
  }

  async published(tenant: string, definitions: readonly CodeDefinition[]) {
    const [rows = []] = await this.#ask<PublishedRow>([[FIND_PUBLISHED, [tenant, namesOf(definitions)]]]);
    return inOrder(definitions, rows);
  }

  async publish(tenant: string, definitions: readonly CodeDefinition[], now: number) {
    const results = await this.#ask<PublishedRow>([
      ...pieces(definitions).map((piece): Query => [PUBLISH, [tenant, piece, now]]),
      [FIND_PUBLISHED, [tenant, namesOf(definitions)]],
    ]);
    return inOrder(definitions, results.at(-1) ?? []);
  }

  async #page<Kind extends DefinitionKind>(
    statement: string,
    values: Value[],
  ): Promise<Page<StoredDefinition<Kind>>> {
    const [rows = []] = await this.#ask<ListedRow>([[statement, values]]);
    const last = rows.at(-1);
    const nextCursor =
      last?.more === 1 ? encodeCursor({ createdAt: last.position_at, id: last.position_id }) : undefined;
    return {
      items: rows.map((row) => toDefinition<Kind>(row)),
      ...defined({ nextCursor }),
    };
  }

  async #ask<Row>(queries: Query[]): Promise<Row[][]> {
    // SAFETY: the caller names the columns of the statements that it gives.
    return (await this.#batch(queries)).map(({ results }) => results as Row[]);
  }

  /** All of them in one transaction. */
  async #batch(queries: Query[]): Promise<D1Result[]> {
    try {
      return await inTime(this.#clock, async () => {
        await migrate(this.#database);
        return this.#database.batch(
          queries.map(([statement, values]) => this.#database.prepare(statement).bind(...values)),
        );
      });
    } catch (cause) {
      console.error("The registry cannot be reached:", cause);
      throw new DramatisError(
        "UNAVAILABLE",
        "The registry of libraries does not answer right now. Try again in a moment.",
        { retriable: true, cause },
      );
    }
  }
}

type Query = [statement: string, values: Value[]];

function valuesOf({ tenant, library, kind, id }: DefinitionKey): Value[] {
  return [tenant, library, kind, id];
}

function range({ limit = DEFAULT_LIMIT, cursor, order = "asc" }: PageOptions) {
  const start: ListKey = { createdAt: order === "asc" ? -1 : Number.MAX_SAFE_INTEGER, id: "" };
  return { order, limit, after: cursor === undefined ? start : decodeCursor(cursor) };
}

function inOrder(
  definitions: readonly CodeDefinition[],
  rows: readonly PublishedRow[],
): (PublishedVersion | undefined)[] {
  const byPosition = new Map(rows.map((row) => [row.position, row]));
  return definitions.map((_, index) => {
    const row = byPosition.get(index);
    return row === undefined ? undefined : { version: row.version, createdAt: row.created_at };
  });
}

function toDefinition<Kind extends DefinitionKind>(row: DefinitionRow): StoredDefinition<Kind> {
  const { id, version, hash, owner, created_at: createdAt } = row;
  // SAFETY: only `add` and `publish` write this column, from a definition of the row's kind.
  return {
    id,
    version,
    hash,
    owner,
    createdAt,
    definition: JSON.parse(row.definition) as DefinitionTypes[Kind],
  };
}

function toLibrary({ id, owner, created_at: createdAt }: LibraryRow): StoredLibrary {
  return { id, owner, createdAt };
}
