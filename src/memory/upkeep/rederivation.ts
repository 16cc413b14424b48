/**
 * Rederives memories that have lost one of several sources.
 *
 * REDERIVE-1  A memory is restored as it is if a remaining source states its current text, or if it was written without a source. Its log
 *             loses older texts and erased sources. A memory is erased if only an erased source states its text. An author who changed
 *             other members, archived it, gave an older text, or wrote its parts does not state the text.
 * REDERIVE-2  Any other summary is consolidated again from its remaining parts, and has only their sources. If no part remains, or the
 *             consolidation writes no summary, the summary is erased and its remaining parts are restored.
 */
import type { MemoryLogEntry, MemorySource } from "../../protocol/memory-schemas.ts";
import { toIso } from "../../shared/time.ts";
import type { Corpus } from "../corpus/corpus.ts";
import { originOfText } from "../corpus/decide.ts";
import type { StoredMemory } from "../corpus/stored-memory.ts";
import { causeOf, linkPart, type Member, member, type PreparedConsolidation } from "./consolidation.ts";

/** Returns the remaining parts of a summary that needs a new consolidation. Empty for a memory that is restored as it is (REDERIVE-1). */
export function remainingParts(corpus: Corpus, summary: StoredMemory): StoredMemory[] {
  if (isSupported(corpus, summary)) return [];
  return corpus.rows.memories.parts(summary.n).flatMap((id) => corpus.findById(id) ?? []);
}

/** The whole texts of memories that may be restored, by hash, and their index data. */
export interface PreparedTexts {
  texts: ReadonlyMap<string, string>;
  vectors: unknown;
}

/** Restores or erases a memory that has no remaining parts, in the current transaction (REDERIVE-1). */
export function rederiveSingle(corpus: Corpus, memory: StoredMemory, prepared: PreparedTexts): void {
  const { memories } = corpus.rows;
  const sources = memories.sources(memory.n);
  if (!isSupported(corpus, memory)) {
    corpus.applyErasure(memory, { isErased: true, hash: null });
    return;
  }
  forgetPast(corpus, memory.n, sources);
  restoreToSearch(corpus, { ...memory, hidden: false }, prepared);
}

/** Reports whether the text was written without a source, or a remaining source states the current text. */
function isSupported({ rows: { memories } }: Corpus, { n, own }: StoredMemory): boolean {
  if (own) return true;
  const since = originOfText(memories.log(n))?.version ?? 1;
  return memories.statedSources(n).some(({ statedVersion = 0 }) => statedVersion >= since);
}

function isSame(one: MemorySource, other: MemorySource): boolean {
  return one.conversationId === other.conversationId && one.turnId === other.turnId;
}

/** Removes the older texts from a log, and all sources except `left`. */
function forgetPast(corpus: Corpus, n: number, left: readonly MemorySource[]): void {
  for (const { before, ...entry } of corpus.rows.memories.pagedLog(n)) {
    const sources = entry.sources.filter((one) => left.some((other) => isSame(one, other)));
    const isOther = before !== undefined || sources.length < entry.sources.length;
    if (isOther) corpus.rows.memories.addLog(n, { ...entry, sources });
  }
}

/** Stores a memory as a new version that searches find again. */
function restoreToSearch(corpus: Corpus, memory: StoredMemory, { texts, vectors }: PreparedTexts): void {
  const { now, by } = causeOf(corpus);
  const before = corpus.rows.memories.find(memory.n);
  const next = { ...memory, version: memory.version + 1, updatedAt: now };
  const log: MemoryLogEntry = { version: next.version, change: "restored", at: toIso(now), by, sources: [] };
  corpus.rows.apply({ memory: next, log }, before, vectors, texts.get(memory.hash));
}

/**
 * Replaces the text of a summary with a new consolidation of its remaining parts, in the current transaction (REDERIVE-2). Throws
 * `CONFLICT` or `NOT_FOUND` if a part has changed since.
 */
export function rederiveSummary(
  corpus: Corpus,
  summary: StoredMemory,
  members: readonly Member[],
  { operations, vectors }: PreparedConsolidation,
  preparedParts: PreparedTexts,
): void {
  const { memories, tombstones } = corpus.rows;
  const given = new Map(members);
  const parts = members.map(([n]) => member(corpus, given, n));
  const written = operations.find(({ operation }) => operation?.op === "write");
  const { operation, hash = "" } = written ?? {};
  if (operation?.op !== "write" || tombstones.hasHash(hash)) {
    eraseSummary(corpus, summary, parts, preparedParts);
    return;
  }
  for (const { conversationId, turnId } of memories.sources(summary.n))
    memories.removeSource(conversationId, turnId, summary.n);
  const tainted = parts.some((part) => part.tainted);
  const { content, significance } = operation;
  const cause = { ...causeOf(corpus), tainted };
  corpus.applyChange(summary, { content, significance }, cause, { hash, vectors });
  // `applyChange` logged the previous text. It may repeat erased facts.
  forgetPast(corpus, summary.n, []);
  for (const part of parts) linkPart(corpus, summary, part);
}

/** Erases a summary and restores its parts. */
export function eraseSummary(
  corpus: Corpus,
  summary: StoredMemory,
  parts: readonly StoredMemory[],
  prepared: PreparedTexts,
): void {
  corpus.applyErasure(summary, { isErased: true, hash: null });
  for (const part of parts)
    if (part.state === "archived" && !part.hidden)
      restoreToSearch(corpus, { ...part, state: "current" }, prepared);
}
