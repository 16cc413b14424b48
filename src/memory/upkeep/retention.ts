/**
 * The retention of memories: what becomes of those that nothing has changed for so long.
 *
 * RETAIN-1  Retention names each type that it holds for. Nothing is removed of other types, and nothing at all without it.
 * RETAIN-2  The age of a memory counts from its last change. One that is written again, or updated, stays.
 * RETAIN-3  Each commit treats a bounded number of memories, so that other work of the agent comes between.
 * RETAIN-4  A memory that its retention deletes may be learned again: nobody has erased it. What was made of it stays.
 */
import type { Persona } from "../../protocol/definitions.ts";
import type { Corpus } from "../corpus/corpus.ts";
import type { UpkeepRows } from "./upkeep-rows.ts";

type Retention = NonNullable<NonNullable<Persona["memory"]>["retention"]>;

const DAY_MS = 86_400_000;
/** Memories of one commit. */
const BATCH = 100;

/** Treats memories whose time is over. Reports whether there were some: there may be more. */
export async function retain(corpus: Corpus, rows: UpkeepRows, retention: Retention): Promise<boolean> {
  const now = corpus.ports.clock.now();
  for (const [type, { days, then }] of Object.entries(retention)) {
    const isDeleted = then === "delete";
    const find = () => rows.expired(type, now - days * DAY_MS, isDeleted, BATCH);
    if (find().length === 0) continue;
    await corpus.change(() => {
      const cause = { now, by: { kind: "retention" as const }, sources: [], tainted: false };
      for (const n of find()) {
        const memory = corpus.rows.memories.find(n);
        if (memory === undefined) continue;
        if (isDeleted) corpus.rows.erase(memory, now, { isErased: false, hash: null });
        else corpus.archiveOne(memory, cause);
      }
    });
    return true;
  }
  return false;
}

/** Returns the time at which a memory's time is over next; infinity where there is none. */
export function nextExpiry(rows: UpkeepRows, retention: Retention): number {
  const times = Object.entries(retention).flatMap(([type, { days, then }]) => {
    const oldest = rows.oldest(type, then === "delete");
    return oldest === null ? [] : [oldest + days * DAY_MS];
  });
  return Math.min(Number.POSITIVE_INFINITY, ...times);
}
