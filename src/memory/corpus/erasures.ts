/**
 * Erasing what was learned from a conversation, or from entries of it.
 *
 * MEMSRC-2  A text that was written without a source stays, also where an extraction repeated it. Older texts of a memory that lost a source leave
 *           its log at once.
 * MEMSRC-1  A memory that loses all of its sources is erased, with its log. One that loses some leaves searches, and is marked to be
 *           derived again from the others.
 * MEMSRC-3  A memory that is to be derived again is not there for any reader, any list, any export and any record until it is.
 */
import type { ErasedSources } from "../../protocol/memory.ts";
import type { Corpus } from "./corpus.ts";

/** Removes sources in the current transaction. Resolves when the wake-up is armed. */
export function eraseSources(corpus: Corpus, { conversationId, turns }: ErasedSources): Promise<void> {
  if (!corpus.exists) return Promise.resolve();
  const { memories } = corpus.rows;
  const erased = new Map(turns?.map(({ turnId, entries }) => [turnId, entries]));
  const lost = new Set<number>();
  for (const { turnId, n, entries } of memories.sourcesOf(conversationId)) {
    if (turns !== undefined && !erased.has(turnId)) continue;
    const gone = erased.get(turnId);
    const isTouched = gone === undefined || entries === null || entries.some((entry) => gone.includes(entry));
    if (!isTouched) continue;
    memories.removeSource(conversationId, turnId, n);
    lost.add(n);
  }
  for (const n of lost) {
    const memory = memories.find(n);
    if (memory !== undefined) corpus.lostSource(memory, true);
  }
  return corpus.ports.noted();
}
