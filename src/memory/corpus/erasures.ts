/**
 * Erases memories that were learned from a conversation, or from entries of it.
 *
 * MEMSRC-2  A text that an author wrote or confirmed without a source stays. This holds even if extractions wrote or repeated it, in any
 *           order. If a memory lost a source, its older texts leave its log at once.
 * MEMSRC-1  A memory that loses all its sources is erased with its log. If it loses some, searches drop it and it is marked for
 *           rederivation from the others.
 * MEMSRC-3  Until a memory is rederived, readers, lists, exports and records omit it.
 * MEMSRC-4  From the first commit, reads and searches omit memories from an erased source, and other results fill their places. Each commit
 *           erases a bounded number of memories. The rest follows, even after a crash.
 */
import type { Corpus } from "./corpus.ts";
import { overlaps } from "./erased-sources.ts";
import type { ErasedSources } from "./schemas.ts";

const BATCH = 100;

/** Removes sources in the current transaction. Resolves when the wake-up is armed. */
export function eraseSources(corpus: Corpus, erased: ErasedSources): Promise<void> {
  corpus.rows.erased.put(erased);
  if (!corpus.exists) return Promise.resolve();
  const { memories } = corpus.rows;
  const { conversationId, turns } = erased;
  if (turns === undefined) memories.condemnAll(conversationId);
  else {
    const erasedByTurn = Map.groupBy(turns, ({ turnId }) => turnId);
    const sources = memories.sourcesOf(conversationId, [...erasedByTurn.keys()]);
    const touched = sources.filter(({ turnId, entries }) =>
      erasedByTurn.get(turnId)?.some((one) => overlaps(entries, one.entries ?? null)),
    );
    memories.condemn(touched.map(({ n }) => n));
  }
  corpus.rows.together(() => erasePart(corpus));
  return corpus.ports.noted();
}

/** Erases more condemned memories in its own commit. Reports whether some are left. */
export async function eraseMore(corpus: Corpus): Promise<boolean> {
  if (!corpus.exists || !corpus.rows.memories.hasCondemned()) return false;
  await corpus.change(() => erasePart(corpus));
  return corpus.rows.memories.hasCondemned();
}

function erasePart(corpus: Corpus): void {
  const { memories, erased } = corpus.rows;
  for (const n of memories.condemned(BATCH)) {
    // An earlier erasure of this batch may have erased it.
    const memory = memories.findCondemned(n);
    if (memory === undefined) continue;
    for (const source of memories.sources(n))
      if (erased.has(source)) memories.removeSource(source.conversationId, source.turnId, n);
    corpus.lostSource({ ...memory, hidden: false }, true);
  }
}
