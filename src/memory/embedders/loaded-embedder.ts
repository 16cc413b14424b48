/**
 * The embedder without a model, on a table of word vectors that is loaded at its first use.
 *
 * STATICVEC-2  A missing or damaged table means no embedder: searches go on by words. A load that fails is tried again at the next use,
 *             and one that is silent for two seconds half a minute later.
 */
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";
import type { Embedder } from "./embedder.ts";
import { StaticEmbedder } from "./static-embedder.ts";
import { WordTable } from "./word-table.ts";

/** Milliseconds in which the table is loaded, and those without another attempt after a load that is silent. */
const [LOAD_MS, SILENCE_MS] = [2_000, 30_000];

/** Returns an embedder on a table that is loaded at its first use, once an isolate; `null` without the table. */
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
      // Every caller has a deadline of its own: the actor that began the load may be gone.
      return await withDeadline(clock, LOAD_MS, () => current);
    } catch (error) {
      if (loading !== current) return null;
      loading = undefined;
      if (error instanceof DOMException && error.name === "TimeoutError")
        pauseUntil = clock.now() + SILENCE_MS;
      console.warn("The word vectors could not be loaded. Searches of memories go on without them.", error);
      return null;
    }
  };
}
