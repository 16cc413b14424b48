/**
 * An embedder without a model. It loads a table of word vectors on first use.
 *
 * STATICVEC-2  If the table is missing or damaged, searches use words only. A failed load is retried at the next use. A load that exceeds
 *              two seconds is retried after half a minute.
 */
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";
import type { Embedder } from "./embedder.ts";
import { StaticEmbedder } from "./static-embedder.ts";
import { WordTable } from "./word-table.ts";

/** Timeout of a load, and pause after a timeout, in milliseconds. */
const [LOAD_MS, SILENCE_MS] = [2_000, 30_000];

/** Returns an embedder that loads its table on first use, once per isolate. `null` without a table. */
export function staticEmbedder(
  load: () => Promise<ArrayBuffer | null>,
  clock: Pick<Clock, "now" | "timer">,
): () => Promise<Embedder | null> {
  let loading: Promise<Embedder | null> | undefined;
  let pauseUntil = 0;
  return async () => {
    if (clock.now() < pauseUntil) return null;
    loading ??= load().then((bytes) => {
      const table = bytes === null ? null : WordTable.read(bytes);
      return table === null ? null : new StaticEmbedder(table);
    });
    const current = loading;
    try {
      // Every caller has its own deadline, because the actor that began the load may have stopped.
      return await withDeadline(clock, LOAD_MS, () => current);
    } catch (error) {
      if (loading !== current) return null;
      loading = undefined;
      if (error instanceof DOMException && error.name === "TimeoutError")
        pauseUntil = clock.now() + SILENCE_MS;
      console.warn("The word vectors could not be loaded. Memory searches use words only until then.", error);
      return null;
    }
  };
}
