/**
 * The memories of an agent as lines of its export, and back.
 *
 * BACKUP-5  An imported memory has the id, the text, the log and the sources of the exported one, and searches find it as before. Its version is the
 *           next one, whose entry of the log says that an import restored it: what is older is as the file tells it. A text that an older import
 *           brings never replaces a newer one: an import fills an agent that had none.
 * BACKUP-9  A file has what was erased: the sources, and of memories the id, the time and the salted hash, with the salt. So what was erased does not
 *           come back by an extraction after an import either.
 */
import { DramatisError } from "../../shared/errors.ts";
import { toIso } from "../../shared/time.ts";
import { validate } from "../../shared/validation.ts";
import { checkErasedFirst, checkMemory, checkTombstone } from "./backup-order.ts";
import {
  checkPast,
  type MemoryLine,
  markSchema,
  memoryLineSchema,
  saltSchema,
  tombstoneSchema,
} from "./backup-schemas.ts";
import type { Corpus } from "./corpus.ts";
import { indexEntry } from "./corpus-rows.ts";
import { numberOf } from "./memory-id.ts";
import { excerptOf, isFound, isLong, type StoredMemory } from "./stored-memory.ts";

/** Memories that are read at once. */
const PAGE = 50;

/**
 * Yields the lines of an agent's memory: the salt of its hashes, what was erased, and each memory, ascending by its number. Throws `UNAVAILABLE`
 * while a text cannot be read.
 */
export async function* memoryLines(corpus: Corpus): AsyncGenerator<Record<string, unknown>> {
  const { memories, tombstones, erased } = corpus.rows;
  for (const mark of erased.all()) yield { erasedSource: mark };
  if (!corpus.exists) return;
  const { salt } = corpus.hash;
  if (salt !== undefined) yield { salt };
  for (const { n: _, ...tombstone } of tombstones.all()) yield { erasedMemory: tombstone };
  const state = ["current" as const, "ended" as const, "archived" as const];
  for (let after = 0; ; ) {
    const page = memories.list("all", { state }, { order: "asc", after, limit: PAGE });
    for (const memory of page) {
      const { n, content: _content, long: _long, ref: _ref, hash: _hash, ...same } = memory;
      const text = await corpus.texts.of(memory);
      const log = [...memories.log(n)];
      yield { memory: { ...same, text, sources: memories.sayingSources(n), parts: memories.parts(n), log } };
    }
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.n;
  }
}

/**
 * Reads a line. Returns what stores it, in a transaction; `undefined` for a line that is not one of memory. Throws `INVALID_INPUT`. The salt holds
 * at once: the hashes of the lines after it need it.
 */
export async function prepareLine(
  corpus: Corpus,
  line: Record<string, unknown>,
): Promise<(() => void) | undefined> {
  if ("memory" in line) {
    const prepared = await prepareMemory(corpus, line.memory);
    return () => restoreMemory(corpus, prepared);
  }
  if ("erasedMemory" in line) {
    const tombstone = validate(tombstoneSchema, line.erasedMemory, "", "The erased memory");
    checkPast(tombstone, ["at"], corpus.ports.clock.now());
    const n = numberOf(tombstone.id) ?? 0;
    return () => {
      checkTombstone(corpus, n);
      corpus.rows.tombstones.put({ ...tombstone, n });
    };
  }
  if ("erasedSource" in line) {
    const { conversationId, turnId, entries } = validate(markSchema, line.erasedSource, "", "The source");
    const turns = turnId === undefined ? undefined : [{ turnId, ...(entries && { entries }) }];
    return () => {
      checkErasedFirst(corpus);
      corpus.rows.erased.put({ conversationId, ...(turns && { turns }) });
    };
  }
  if (!("salt" in line)) return undefined;
  const salt = validate(saltSchema, line.salt, "", "The salt");
  const { salt: known = salt } = corpus.hash;
  if (known !== salt)
    throw new DramatisError("INVALID_INPUT", "An export has one salt, before the memories.");
  corpus.hash.adopt(salt);
  return () => checkErasedFirst(corpus);
}

/** A memory of a file, with what its transaction needs. */
interface PreparedMemory {
  line: MemoryLine;
  hash: string;
  vectors: unknown;
}

async function prepareMemory(corpus: Corpus, value: unknown): Promise<PreparedMemory> {
  const line = validate(memoryLineSchema, value, "", "The memory");
  checkPast(line, ["createdAt", "updatedAt"], corpus.ports.clock.now());
  const hash = await corpus.hash.of(line.userId, line.text);
  return { line, hash, vectors: await corpus.ports.index.prepare([line.text]) };
}

function restoreMemory(corpus: Corpus, { line, hash, vectors }: PreparedMemory): void {
  const { text, sources, parts, log, version: exported, ...same } = line;
  const n = numberOf(line.id) ?? 0;
  const long = isLong(text);
  const version = exported + 1;
  const content = long ? excerptOf(text) : text;
  const memory: StoredMemory = { ...same, version, n, hash, long, ref: null, content };
  const { memories, pending } = corpus.rows;
  checkMemory(corpus, line);
  corpus.rows.restore(memory);
  for (const entry of log) memories.addLog(n, entry);
  const at = toIso(corpus.ports.clock.now());
  memories.addLog(n, { version, change: "restored", at, by: { kind: "import" }, sources: [] });
  for (const one of sources) memories.addSource(n, one);
  for (const id of parts) memories.addPart(n, { n: numberOf(id) ?? 0, id });
  if (long) memories.putText(n, version, text);
  if (isFound(memory)) corpus.ports.index.put([indexEntry(memory, text)], vectors);
  pending.note(n);
}
