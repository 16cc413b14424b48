/**
 * Erasing what was learned from a conversation, or from entries of it.
 *
 * MEMSRC-2  A text that somebody wrote or confirmed without a source stays, also where extractions wrote or repeated it, in whatever order. Older texts of a memory that lost a source leave
 *           its log at once.
 * MEMSRC-1  A memory that loses all of its sources is erased, with its log. One that loses some leaves searches, and is marked to be
 *           derived again from the others.
 * MEMSRC-3  A memory that is to be derived again is not there for any reader, any list, any export and any record until it is.
 * MEMSRC-4  What comes from an erased source is neither read nor found from the first commit on, and takes no place among what searches find. Each commit erases a bounded number of memories;
 *           those that are left follow, across crashes.
 */
import type { ErasedSources } from "../../protocol/memory.ts";
import type { Corpus } from "./corpus.ts";
import { isTouched } from "./erased-sources.ts";

/** Memories of one commit. */
const BATCH = 100;

/** Removes sources in the current transaction. Resolves when the wake-up is armed. */
export function eraseSources(corpus: Corpus, erased: ErasedSources): Promise<void> {
  corpus.rows.erased.put(erased);
  if (!corpus.exists) return Promise.resolve();
  const { memories } = corpus.rows;
  const { conversationId, turns } = erased;
  if (turns === undefined) memories.condemnAll(conversationId);
  else {
    const gone = Map.groupBy(turns, ({ turnId }) => turnId);
    const sources = memories.sourcesOf(conversationId, [...gone.keys()]);
    const touched = sources.filter(({ turnId, entries }) =>
      gone.get(turnId)?.some((one) => isTouched(entries, one.entries ?? null)),
    );
    memories.condemn(touched.map(({ n }) => n));
  }
  corpus.rows.together(() => erasePart(corpus));
  return corpus.ports.noted();
}

/** Erases more of what is condemned, in a commit of its own. Reports whether some is left. */
export async function eraseMore(corpus: Corpus): Promise<boolean> {
  if (!corpus.exists || !corpus.rows.memories.hasCondemned()) return false;
  await corpus.change(() => erasePart(corpus));
  return corpus.rows.memories.hasCondemned();
}

function erasePart(corpus: Corpus): void {
  const { memories, erased } = corpus.rows;
  for (const n of memories.condemned(BATCH)) {
    // An earlier one of the part may have taken it with it.
    const memory = memories.findCondemned(n);
    if (memory === undefined) continue;
    for (const source of memories.sources(n))
      if (erased.has(source)) memories.removeSource(source.conversationId, source.turnId, n);
    corpus.lostSource({ ...memory, hidden: false }, true);
  }
}
