/**
 * The registry of the stores outside of actors that hold data of a conversation or of an agent, each with the way to empty it.
 *
 * REMOVE-4  Every table of D1 and every prefix of objects is in this registry, or is named in it as one that holds nothing of either.
 */
import type { D1OwnedRows } from "../../../d1/owned-rows.ts";
import { deleteVectors, type RetainedVectorRows } from "../../../memory/corpus/index/owned-vectors.ts";
import type { ObjectStore } from "../../../ports/object-store.ts";
import type { VectorIndex } from "../../../ports/vector-index.ts";

/** A deleted conversation or agent. */
export interface RemovedOwner {
  kind: "conversation" | "agent";
  tenant: string;
  id: string;
  /** Milliseconds since the epoch: a part of the keys of its rows. */
  createdAt: number;
  /** The vectors that the store of vectors may have of an agent. */
  vectors?: RetainedVectorRows;
}

/** A store that holds data of conversations or agents. */
export interface OwnedStore {
  /** Kept with deletions: never change it. */
  readonly name: string;
  /**
   * Removes everything of the owner, or the piece of it that begins at `from`. A number that it returns is where the next piece
   * begins. Repeating it changes nothing. Rejects if the store does not answer.
   */
  empty(owner: RemovedOwner, from?: number): Promise<unknown>;
}

/** The name of the store of vectors. */
export const VECTORS = "vectors";

/** Keys that one list has at most. */
const PAGE = 200;

/** Returns the stores of an application; those whose bindings are missing are absent. */
export function ownedStores({
  rows,
  objects,
  vectors,
}: {
  rows: D1OwnedRows | null;
  objects: ObjectStore | null;
  vectors: VectorIndex | null;
}): readonly OwnedStore[] {
  const tables =
    rows === null ? [] : rows.tables.map((table) => ({ name: `d1:${table}`, empty: rows.emptying(table) }));
  return [
    ...tables,
    ...(objects === null
      ? []
      : [{ name: "r2", empty: (owner: RemovedOwner) => emptyPrefix(objects, owner) }]),
    ...(vectors === null
      ? []
      : [
          {
            name: VECTORS,
            empty: async (owner: RemovedOwner, from?: number) =>
              owner.vectors && deleteVectors(vectors, owner, owner.vectors, from),
          },
        ]),
  ];
}

/** Returns the prefix of every object of a conversation or an agent. */
function objectPrefix({ tenant, id }: Pick<RemovedOwner, "tenant" | "id">): string {
  return `${encodeURIComponent(tenant)}/${id}/`;
}

async function emptyPrefix(objects: ObjectStore, owner: RemovedOwner): Promise<void> {
  const prefix = objectPrefix(owner);
  for (
    let keys = await objects.list(prefix, PAGE);
    keys.length > 0;
    keys = await objects.list(prefix, PAGE)
  ) {
    await Promise.all(keys.map((key) => objects.delete(key)));
  }
}
