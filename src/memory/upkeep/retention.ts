/**
 * Deletes or archives memories that have not changed for the days that their retention names.
 *
 * RETAIN-1  Retention applies only to the types that it names.
 * RETAIN-2  The age of a memory counts from its last change. A write or an update restarts it.
 * RETAIN-3  Each commit handles a bounded number of memories, so other work of the agent can run between commits.
 * RETAIN-4  The agent may learn a memory again that retention deleted. Summaries of the memory stay.
 */
import type { Persona } from "../../protocol/definitions.ts";
import type { Corpus } from "../corpus/corpus.ts";
import type { UpkeepRows } from "./upkeep-rows.ts";

type Retention = NonNullable<NonNullable<Persona["memory"]>["retention"]>;

const DAY_MS = 86_400_000;
const BATCH = 100;

/** Expires one batch of memories. Reports whether it found any. More may be left. */
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
        else corpus.applyArchive(memory, cause);
      }
    });
    return true;
  }
  return false;
}

export function nextExpiry(rows: UpkeepRows, retention: Retention): number {
  const times = Object.entries(retention).flatMap(([type, { days, then }]) => {
    const oldest = rows.oldest(type, then === "delete");
    return oldest === null ? [] : [oldest + days * DAY_MS];
  });
  return Math.min(Number.POSITIVE_INFINITY, ...times);
}
