/**
 * Derives memories again that have lost one of several sources.
 *
 * REDERIVE-1  A memory whose text one of its remaining sources has said, or that was written without a source, comes back to searches as it is. Its log loses its older texts and the
 *             sources that were erased. A memory whose text only an erased source has said is erased: who changed its other members, archived it, gave an older text
 *             or made the text of other memories has not said it.
 * REDERIVE-2  Any other that was made of memories, as a summary is, is made again of those that are left of them, and has their sources alone. If nothing is left of
 *             them, or nothing can be made, it is erased, and what is left of them comes back to searches.
 */
import type { MemoryLogEntry, MemorySource } from "../../protocol/memory.ts";
import { toIso } from "../../shared/time.ts";
import type { Corpus } from "../corpus/corpus.ts";
import { originOfText } from "../corpus/decide.ts";
import type { StoredMemory } from "../corpus/stored-memory.ts";
import { causeOf, joinPart, type Member, member, type PreparedJoin } from "./joining.ts";

/** Returns the memories that are left of those that a memory is to be made of again; none for one that comes back as it is (REDERIVE-1). */
export function partsLeft(corpus: Corpus, whole: StoredMemory): StoredMemory[] {
  if (isSupported(corpus, whole)) return [];
  return corpus.rows.memories.parts(whole.n).flatMap((id) => corpus.findById(id) ?? []);
}

/** The whole texts of memories that may come back to searches, by their hashes, and what the index needs of these texts. */
export interface PreparedTexts {
  texts: ReadonlyMap<string, string>;
  vectors: unknown;
}

/** Decides, in the current transaction, about a memory that is to be made of no others (REDERIVE-1). */
export function rederiveAlone(corpus: Corpus, memory: StoredMemory, prepared: PreparedTexts): void {
  const { memories } = corpus.rows;
  const sources = memories.sources(memory.n);
  if (!isSupported(corpus, memory)) {
    corpus.eraseOne(memory, { isErased: true, hash: null });
    return;
  }
  forgetPast(corpus, memory.n, sources);
  comeBack(corpus, { ...memory, hidden: false }, prepared);
}

/**
 * Reports whether somebody wrote the text of a memory, or one of its sources has said it as it is now. One that changed other members, or that made
 * the text of other memories, has not.
 */
function isSupported({ rows: { memories } }: Corpus, { n, own }: StoredMemory): boolean {
  if (own) return true;
  const since = originOfText(memories.log(n))?.version ?? 1;
  return memories.sayingSources(n).some(({ said = 0 }) => said >= since);
}

function isSame(one: MemorySource, other: MemorySource): boolean {
  return one.conversationId === other.conversationId && one.turnId === other.turnId;
}

/** Takes the older texts, and all sources but those that are left, out of a log. */
function forgetPast(corpus: Corpus, n: number, left: readonly MemorySource[]): void {
  for (const { before, ...entry } of corpus.rows.memories.pagedLog(n)) {
    const sources = entry.sources.filter((one) => left.some((other) => isSame(one, other)));
    const isOther = before !== undefined || sources.length < entry.sources.length;
    if (isOther) corpus.rows.memories.addLog(n, { ...entry, sources });
  }
}

/** Stores a memory that searches find again, as a new version. */
function comeBack(corpus: Corpus, memory: StoredMemory, { texts, vectors }: PreparedTexts): void {
  const { now, by } = causeOf(corpus);
  const before = corpus.rows.memories.find(memory.n);
  const next = { ...memory, version: memory.version + 1, updatedAt: now };
  const log: MemoryLogEntry = { version: next.version, change: "restored", at: toIso(now), by, sources: [] };
  corpus.rows.apply({ memory: next, log }, before, vectors, texts.get(memory.hash));
}

/**
 * Makes a summary again, in the current transaction, of what a consolidation wrote about the memories that are left (REDERIVE-2). Throws `CONFLICT`
 * or `NOT_FOUND` if one of them has changed meanwhile.
 */
export function rederiveWhole(
  corpus: Corpus,
  whole: StoredMemory,
  members: readonly Member[],
  { operations, vectors }: PreparedJoin,
  preparedParts: PreparedTexts,
): void {
  const { memories, tombstones } = corpus.rows;
  const given = new Map(members);
  const parts = members.map(([n]) => member(corpus, given, n));
  const written = operations.find(({ operation }) => operation?.op === "write");
  const { operation, hash = "" } = written ?? {};
  if (operation?.op !== "write" || tombstones.hasHash(hash)) {
    giveUpWhole(corpus, whole, parts, preparedParts);
    return;
  }
  for (const { conversationId, turnId } of memories.sources(whole.n))
    memories.removeSource(conversationId, turnId, whole.n);
  const tainted = parts.some((part) => part.tainted);
  const { content, significance } = operation;
  const cause = { ...causeOf(corpus), tainted };
  corpus.changeOne(whole, { content, significance }, cause, { hash, vectors });
  // The log has the text that was true before: it told of what was erased.
  forgetPast(corpus, whole.n, []);
  for (const part of parts) joinPart(corpus, whole, part);
}

/** Erases a summary, and brings what is left of its memories back to searches. */
export function giveUpWhole(
  corpus: Corpus,
  whole: StoredMemory,
  parts: readonly StoredMemory[],
  prepared: PreparedTexts,
): void {
  corpus.eraseOne(whole, { isErased: true, hash: null });
  for (const part of parts)
    if (part.state === "archived" && !part.hidden) comeBack(corpus, { ...part, state: "current" }, prepared);
}
