/**
 * The vectors of an agent in a store of vectors: their namespace, and their deletion with the agent.
 *
 * MEMVECTORS-5  An agent of a tenant has a namespace of its own, whose name tells neither.
 * MEMVECTORS-6  With the agent all vectors go that the store may have of it, in pieces, each of which is noted. The numbers of these vectors stay
 *               until the deletion was repeated.
 */
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { MAX_DELETED, type VectorIndex } from "../../../ports/vector-index.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import { GONE, keyOf, LEFT, partsOf } from "./space-rows.ts";
import type { SentSpace } from "./spaces.ts";
import { idOf, idsOfRow } from "./vector-ids.ts";

/** The spaces of an agent whose vectors a store may have. The numbers of the vectors are in a table of the agent's actor. */
export interface PublishedVectors {
  spaces: SentSpace[];
}

/** Vectors of a row, by their ids. */
export interface KeptVectors {
  key: number;
  ids: string[];
}

/** Returns the next rows after a key, ascending; fewer than `limit` at the end. */
export type KeptVectorRows = (after: number, limit: number) => KeptVectors[];

/** Deletions of one piece. */
const REQUESTS = 20;

const CREATE = "CREATE TABLE IF NOT EXISTS removed_vectors (key INTEGER PRIMARY KEY)";
const KEEP =
  "INSERT OR IGNORE INTO removed_vectors (key) SELECT key + ? FROM memory_index WHERE key >= ? AND key < ?";
const LIST = "SELECT key FROM removed_vectors WHERE key > ? ORDER BY key LIMIT ?";
const DROP = "DROP TABLE IF EXISTS removed_vectors";

/** Returns the name of the namespace of an agent: 64 characters. */
export function vectorNamespace({ tenant, id }: { tenant: string; id: string }): Promise<string> {
  return sha256Hex(JSON.stringify(["memories", tenant, id]));
}

/**
 * Keeps the numbers of the vectors that a store may have of a space, also after the index is dropped. `vectorKeys` is the range of the rows that have
 * vectors, where searches still use the space.
 */
export function keepVectors(
  database: SqlDatabase,
  { number }: SentSpace,
  vectorKeys?: readonly [from: number, to: number],
): void {
  database.run(CREATE);
  const left = keyOf(number, LEFT, 0);
  database.run(KEEP, 0, keyOf(number, GONE, 0), keyOf(number, LEFT + 1, 0));
  if (vectorKeys !== undefined) database.run(KEEP, left - vectorKeys[0], ...vectorKeys);
}

/** Returns the reader of what `keepVectors` kept. */
export function keptVectors(database: SqlDatabase, { spaces }: PublishedVectors): KeptVectorRows {
  const perRow = new Map(spaces.map((space) => [space.number, space.perRow]));
  return (after, limit) => {
    // A crash may have come after the table was dropped.
    database.run(CREATE);
    return database.all<{ key: number }>(LIST, after, limit).map(({ key }) => {
      const { space, kind, at } = partsOf(key);
      const ofRow = { number: space, perRow: perRow.get(space) ?? 0 };
      return { key, ids: kind === LEFT ? idsOfRow(ofRow, at) : [idOf(space, at)] };
    });
  };
}

/** Drops what `keepVectors` kept, if it did. */
export function dropKeptVectors(database: SqlDatabase): void {
  database.run(DROP);
}

/**
 * Deletes a piece of an agent's vectors, after the row with the key `from`. Returns where the next one begins; `undefined` after the last. Rejects if the
 * store does not answer.
 */
export async function deleteVectors(
  index: VectorIndex,
  owner: { tenant: string; id: string },
  rows: KeptVectorRows,
  from = 0,
): Promise<number | undefined> {
  const namespace = await vectorNamespace(owner);
  const ids: string[] = [];
  let after = from;
  for (const row of rows(from, REQUESTS * MAX_DELETED)) {
    if (ids.length >= REQUESTS * MAX_DELETED) break;
    ids.push(...row.ids);
    after = row.key;
  }
  for (let at = 0; at < ids.length; at += MAX_DELETED)
    await index.delete(namespace, ids.slice(at, at + MAX_DELETED));
  return rows(after, 1).length > 0 ? after : undefined;
}
