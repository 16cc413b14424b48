/** The stores of memory copies, from the bindings of a Worker. */
import { objectsInTime } from "../../attachments/objects-in-time.ts";
import { D1Memories } from "../../d1/memories.ts";
import { listsMoveOf } from "../../d1/move-lists.ts";
import { systemClock } from "../../ports/system.ts";
import { R2ObjectStore } from "../../ports/workers/r2-object-store.ts";
import type { MemoryStores } from "./memory.ts";

/** Returns the stores of a Worker with these bindings. Each request has a timeout. */
export function memoryStores(env: { BUCKET?: R2Bucket; DB?: D1Database }): MemoryStores {
  const { BUCKET } = env;
  const lists = listsMoveOf(env, systemClock);
  return {
    objects: () =>
      BUCKET === undefined
        ? null
        : objectsInTime(new R2ObjectStore(BUCKET), systemClock, "The store of long texts"),
    records: () => (lists === null ? null : new D1Memories(lists.databases)),
  };
}
