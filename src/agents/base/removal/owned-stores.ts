/**
 * The registry of external stores with data of conversations or agents. Each entry can empty its store.
 *
 * REMOVE-4  This registry names every D1 table, every object prefix and the log of events, including those without such data.
 */
import type { D1OwnedRows } from "../../../d1/owned-rows.ts";
import { deleteVectors, type RetainedVectorRows } from "../../../memory/corpus/index/owned-vectors.ts";
import type { ObjectStore } from "../../../ports/object-store.ts";
import type { VectorIndex } from "../../../ports/vector-index.ts";
import type { EventLogWriter } from "../lookup/event-logs.ts";

export interface RemovedOwner {
  kind: "conversation" | "agent";
  tenant: string;
  id: string;
  /** Milliseconds since the epoch: a part of the keys of its rows. */
  createdAt: number;
  /** The vectors of an agent that the vector store may have. */
  vectors?: RetainedVectorRows;
}

export interface OwnedStore {
  /** Kept with deletions: never change it. */
  readonly name: string;
  /**
   * Removes all data of the owner, or one piece of it from `from` on. Returns the start of the next piece, if any, as a number. Idempotent.
   * Rejects if the store does not answer.
   */
  empty(owner: RemovedOwner, from?: number): Promise<unknown>;
}

export const VECTORS = "vectors";

/** Maximum number of keys in one list. */
const PAGE = 200;

export function ownedStores({
  rows,
  objects,
  vectors,
  events,
  workspaces = null,
}: {
  rows: D1OwnedRows | null;
  objects: ObjectStore | null;
  vectors: VectorIndex | null;
  events: Pick<EventLogWriter, "empty"> | null;
  workspaces?: ((tenant: string, id: string) => Promise<unknown>) | null;
}): readonly OwnedStore[] {
  const tables =
    rows === null ? [] : rows.tables.map((table) => ({ name: `d1:${table}`, empty: rows.emptying(table) }));
  return [
    ...tables,
    ...(events === null ? [] : [{ name: "events", empty: (owner: RemovedOwner) => emptyLog(events, owner) }]),
    ...(workspaces === null
      ? []
      : [
          {
            name: "workspace",
            empty: async ({ kind, tenant, id }: RemovedOwner) => {
              if (kind === "conversation") await workspaces(tenant, id);
            },
          },
        ]),
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

function objectPrefix({ tenant, id }: Pick<RemovedOwner, "tenant" | "id">): string {
  return `${encodeURIComponent(tenant)}/${id}/`;
}

/** Returns 1 if entries are left. */
async function emptyLog({ empty }: Pick<EventLogWriter, "empty">, { kind, tenant, id }: RemovedOwner) {
  return kind === "conversation" && (await empty(tenant, id)) ? 1 : undefined;
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
