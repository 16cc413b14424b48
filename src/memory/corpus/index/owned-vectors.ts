/**
 * The namespace of an agent in a vector store, and the deletion of its vectors with the agent.
 *
 * MEMVECTORS-5  Each agent of a tenant has its own namespace. The name does not reveal the tenant or the agent.
 * MEMVECTORS-6  Deleting an agent deletes all its vectors from the store, in recorded steps. The numbers of these vectors are kept until
 *               the deletion has been repeated.
 */
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { MAX_DELETED, type VectorIndex } from "../../../ports/vector-index.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import { DELETED_VECTORS, keyOf, partsOf, WITHDRAWN_BLOCKS } from "./space-rows.ts";
import type { SentSpace } from "./spaces.ts";
import { idOf, idsOfRow } from "./vector-ids.ts";

/** The spaces of an agent with vectors in a store. A table of the actor keeps the numbers of the vectors. */
export interface PublishedVectors {
  spaces: SentSpace[];
}

export interface RetainedVectors {
  key: number;
  ids: string[];
}

/** Returns the next rows after a key, ascending. Fewer than `limit` rows mean the end. */
export type RetainedVectorRows = (after: number, limit: number) => RetainedVectors[];

/** Deletions per step. */
const REQUESTS = 20;

const CREATE = "CREATE TABLE IF NOT EXISTS removed_vectors (key INTEGER PRIMARY KEY)";
const KEEP =
  "INSERT OR IGNORE INTO removed_vectors (key) SELECT key + ? FROM memory_index WHERE key >= ? AND key < ?";
const LIST = "SELECT key FROM removed_vectors WHERE key > ? ORDER BY key LIMIT ?";
const DROP = "DROP TABLE IF EXISTS removed_vectors";

/** Returns the name of an agent's namespace: 64 characters. */
export function vectorNamespace({ tenant, id }: { tenant: string; id: string }): Promise<string> {
  return sha256Hex(JSON.stringify(["memories", tenant, id]));
}

/**
 * Keeps the numbers of the vectors that a store may have, even after the index is dropped. `vectorKeys` is the range of rows with vectors
 * if searches still use the space.
 */
export function retainVectors(
  database: SqlDatabase,
  { number }: SentSpace,
  vectorKeys?: readonly [from: number, to: number],
): void {
  database.run(CREATE);
  const left = keyOf(number, WITHDRAWN_BLOCKS, 0);
  database.run(KEEP, 0, keyOf(number, DELETED_VECTORS, 0), keyOf(number, WITHDRAWN_BLOCKS + 1, 0));
  if (vectorKeys !== undefined) database.run(KEEP, left - vectorKeys[0], ...vectorKeys);
}

/** Returns a reader of the numbers from `retainVectors`. */
export function retainedVectors(database: SqlDatabase, { spaces }: PublishedVectors): RetainedVectorRows {
  const perRow = new Map(spaces.map((space) => [space.number, space.perRow]));
  return (after, limit) => {
    // The actor may have crashed after the table was dropped.
    database.run(CREATE);
    return database.all<{ key: number }>(LIST, after, limit).map(({ key }) => {
      const { space, kind, at } = partsOf(key);
      const ofRow = { number: space, perRow: perRow.get(space) ?? 0 };
      return { key, ids: kind === WITHDRAWN_BLOCKS ? idsOfRow(ofRow, at) : [idOf(space, at)] };
    });
  };
}

/** Drops the table of `retainVectors`, if it exists. */
export function dropRetainedVectors(database: SqlDatabase): void {
  database.run(DROP);
}

/**
 * Deletes one step of an agent's vectors, after the row with the key `from`. Returns the start of the next step, or `undefined` at the end.
 * Rejects if the store does not answer.
 */
export async function deleteVectors(
  index: VectorIndex,
  owner: { tenant: string; id: string },
  rows: RetainedVectorRows,
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
