/**
 * The SQL of the registry, and the JSON lists that it takes as values. `?1` is always the tenant. Statements for one
 * definition take `?2` library, `?3` kind, `?4` id.
 */
import type { UnversionedDefinition } from "../library/registry/definition-source.ts";
import { bothOrders } from "../shared/page.ts";
import { utf8Length } from "../shared/utf8.ts";
import { MAX_PAGE_CHARACTERS } from "./statements.ts";

/** Maximum number of versions of a definition. */
export const MAX_VERSIONS = 1_000;

const ONE = "tenant = ?1 AND library = ?2 AND kind = ?3 AND id = ?4";

export const FIND_VERSION = `SELECT * FROM definitions WHERE ${ONE} AND version = ?5`;
export const FIND_LATEST = `SELECT * FROM definitions WHERE ${ONE} ORDER BY version DESC LIMIT 1`;
/** `?5` is the hash. */
export const FIND_CONTENT = `SELECT * FROM definitions WHERE ${ONE} AND hash = ?5`;

export const FIND_LIBRARY = "SELECT id, owner, created_at FROM libraries WHERE tenant = ?1 AND id = ?2";
/** `?2` id, `?3` owner, `?4` time. Skips a library if another id has the same letters. Reads the others only for a new id. */
export const ADD_LIBRARY = `INSERT INTO libraries (tenant, id, owner, created_at)
SELECT ?1, ?2, ?3, ?4
WHERE NOT EXISTS (SELECT 1 FROM libraries WHERE tenant = ?1 AND id = ?2)
  AND NOT EXISTS (SELECT 1 FROM libraries WHERE tenant = ?1 AND ${folded("id")} = ${folded("?2")})`;

/**
 * Adds the next version, unless a version has this content, the maximum is reached, the library does not exist, or another
 * author owns it. One statement, so that concurrent writers get different numbers. Returns a row if it added one. `?5` hash,
 * `?6` author, `?7` time, `?8` definition, `?9` 1 for an administrator.
 */
export const ADD_VERSION = `INSERT INTO definitions
  (tenant, library, kind, id, version, hash, owner, created_at, definition)
SELECT ?1, ?2, ?3, ?4, COALESCE(MAX(version), 0) + 1, ?5, ?6, ?7, ?8 FROM definitions
WHERE ${ONE}
HAVING COALESCE(MAX(version), 0) < ${MAX_VERSIONS}
  AND EXISTS (SELECT 1 FROM libraries WHERE tenant = ?1 AND id = ?2 AND (?9 = 1 OR owner = ?6))
ON CONFLICT (tenant, library, kind, id, hash) DO NOTHING
RETURNING version`;

const MEMBERS = ["library", "kind", "id", "hash"];
const SAME = MEMBERS.map((member) => `definitions.${member} = wanted.value ->> '${member}'`).join(" AND ");

/** Finds definitions of a JSON list (`?2`) by their content. `position` is the index in the list. */
export const FIND_PUBLISHED = `SELECT wanted.key AS position, version, created_at
FROM json_each(?2) AS wanted CROSS JOIN definitions ON definitions.tenant = ?1 AND ${SAME}
ORDER BY position`;

/** Adds the definitions of a JSON list (`?2`) with new content, each as the next version. `?3` is the time. */
export const PUBLISH = `INSERT INTO definitions
  (tenant, library, kind, id, version, hash, owner, created_at, definition)
SELECT ?1, value ->> 'library', value ->> 'kind', value ->> 'id',
  1 + COALESCE((
    SELECT MAX(version) FROM definitions AS one
    WHERE one.tenant = ?1 AND one.library = value ->> 'library'
      AND one.kind = value ->> 'kind' AND one.id = value ->> 'id'), 0),
  value ->> 'hash', '', ?3, value ->> 'definition'
FROM json_each(?2) WHERE TRUE
ON CONFLICT (tenant, library, kind, id, hash) DO NOTHING`;

/** Lists the latest version of each definition of library `?2` and kind `?3`, after the key `?4` and `?5`; `?6` is the limit. */
export const LIST_DEFINITIONS = bothOrders((comparison, order) =>
  bounded(
    `SELECT latest.*, first.created_at AS position_at, first.id AS position_id
FROM definitions AS first
JOIN definitions AS latest USING (tenant, library, kind, id)
WHERE first.tenant = ?1 AND first.library = ?2 AND first.kind = ?3 AND first.version = 1
  AND (first.created_at, first.id) ${comparison} (?4, ?5)
  AND latest.version = (
    SELECT MAX(version) FROM definitions AS newer
    WHERE newer.tenant = ?1 AND newer.library = ?2 AND newer.kind = ?3 AND newer.id = first.id)`,
    order,
    "?6",
  ),
);

/**
 * Lists the ids of library `?2` and kind `?3` by creation; `?4` is the limit. The index of first versions has all columns, so
 * no definition is read.
 */
export const LIST_IDS = `SELECT id FROM definitions
WHERE tenant = ?1 AND library = ?2 AND kind = ?3 AND version = 1
ORDER BY created_at, id LIMIT ?4`;

/** Lists the versions of a definition after version `?5`; `?6` is the limit. */
export const LIST_VERSIONS = bothOrders((comparison, order) =>
  bounded(
    `SELECT *, version AS position_at, id AS position_id FROM definitions
WHERE ${ONE} AND version ${comparison} ?5`,
    order,
    "?6",
  ),
);

/** Lists libraries after the key `?2` and `?3`; `?4` is the limit. */
export const LIST_LIBRARIES = bothOrders(
  (comparison, order) => `SELECT id, owner, created_at FROM libraries
WHERE tenant = ?1 AND (created_at, id) ${comparison} (?2, ?3)
ORDER BY created_at ${order}, id ${order} LIMIT ?4`,
);

/** Ids that are equal in this form differ only in case, or in `_` for `-`. */
function folded(id: string): string {
  return `REPLACE(LOWER(${id}), '_', '-')`;
}

/** Limits rows to a page, ordered by `position_at` and `position_id`. `more` is 1 if another row follows. */
function bounded(rows: string, order: "ASC" | "DESC", limit: string): string {
  const by = `ORDER BY position_at ${order}, position_id ${order}`;
  return `SELECT * FROM (
  SELECT *,
    ROW_NUMBER() OVER keys AS place,
    SUM(LENGTH(definition)) OVER keys AS characters,
    LEAD(1, 1, 0) OVER keys AS more
  FROM (${rows} ${by} LIMIT ${limit} + 1)
  WINDOW keys AS (${by})
)
WHERE place = 1 OR (place <= ${limit} AND characters <= ${MAX_PAGE_CHARACTERS})
ORDER BY place`;
}

/**
 * Target size of a list, in bytes. A single definition can exceed it: as JSON within JSON it has up to twice
 * `MAX_DEFINITION_BYTES`, which is less than the 2 000 000 bytes that D1 binds.
 */
const MAX_LIST_BYTES = 700_000;

export function contentList(definitions: readonly UnversionedDefinition[]): string {
  return JSON.stringify(definitions.map(({ library, kind, id, hash }) => ({ library, kind, id, hash })));
}

/** Returns the definitions in full, as several lists if one would be too long to bind. */
export function definitionLists(definitions: readonly UnversionedDefinition[]): string[] {
  const lists: string[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const { library, kind, id, hash, definition } of definitions) {
    const item = JSON.stringify({ library, kind, id, hash, definition: JSON.stringify(definition) });
    const length = utf8Length(item);
    if (bytes + length > MAX_LIST_BYTES) {
      lists.push([]);
      bytes = 0;
    }
    lists.at(-1)?.push(item);
    bytes += length;
  }
  return lists.map((items) => `[${items.join(",")}]`);
}
