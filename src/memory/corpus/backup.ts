/**
 * The memories of an agent as lines of its export, and back.
 *
 * BACKUP-5  An imported memory has the id, the text, the log, the sources and the version of the exported one, and searches find it as before. A
 *           text that an older import brings never replaces a newer one: an import fills an agent that had none.
 * BACKUP-9  A file has what was erased: the sources, and of memories the id, the time and the salted hash, with the salt. So what was erased does not
 *           come back by an extraction after an import either.
 */
import { z } from "zod";
import type { MemoryLogEntry } from "../../protocol/memory.ts";
import { validate } from "../../shared/validation.ts";
import type { Corpus } from "./corpus.ts";
import { indexEntry } from "./corpus-rows.ts";
import { MAX_CONTENT_BYTES } from "./limits.ts";
import { numberOf } from "./memory-id.ts";
import { excerptOf, isFound, isLong, type StoredMemory } from "./stored-memory.ts";

/** Memories that are read at once. */
const PAGE = 50;

const time = z.int();
const text = z.string().max(200).nullable();
const source = z.strictObject({
  conversationId: z.string().max(200),
  turnId: z.string().max(200),
  entries: z.array(z.int().min(1)).exactOptional(),
});
const memoryLineId = z.string().refine((id) => numberOf(id) !== null, "Must be the id of a memory.");
const memorySchema = z.strictObject({
  id: memoryLineId,
  text: z.string().max(MAX_CONTENT_BYTES),
  key: text,
  type: z.string().max(200),
  significance: z.number().min(0).max(1),
  speaker: text,
  session: text,
  sequence: z.int().nullable(),
  time: time.nullable(),
  metadata: z.record(z.string(), z.json()),
  userId: text,
  conversationId: text,
  state: z.enum(["current", "ended", "archived"]),
  hidden: z.boolean(),
  tainted: z.boolean(),
  validFrom: time,
  validTo: time.nullable(),
  version: z.int().min(1),
  createdAt: time,
  updatedAt: time,
  sources: z.array(source),
  parts: z.array(z.string()),
  log: z.array(
    z.looseObject({
      version: z.int().min(1),
      change: z.enum(["written", "updated", "ended", "archived", "restored"]),
      at: z.string(),
      by: z.looseObject({ kind: z.string() }),
      sources: z.array(source),
    }),
  ),
});

type MemoryLine = z.output<typeof memorySchema>;

const saltSchema = z.string().min(16).max(100);
const markSchema = z.strictObject({
  conversationId: z.string().min(1).max(200),
  turnId: z.string().min(1).max(200).exactOptional(),
  entries: z.array(z.int().min(0)).exactOptional(),
});
const tombstoneSchema = z.strictObject({
  id: memoryLineId,
  at: time,
  isErased: z.boolean(),
  hash: text,
});

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
      // SAFETY: what is stored is what the schema admits.
      const log = [...memories.log(n)] as unknown as MemoryLine["log"];
      yield { memory: { ...same, text, sources: memories.sources(n), parts: memories.parts(n), log } };
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
    return () => corpus.rows.tombstones.put({ ...tombstone, n: numberOf(tombstone.id) ?? 0 });
  }
  if ("erasedSource" in line) {
    const { conversationId, turnId, entries } = validate(markSchema, line.erasedSource, "", "The source");
    const turns = turnId === undefined ? undefined : [{ turnId, ...(entries && { entries }) }];
    return () => corpus.rows.erased.put({ conversationId, ...(turns && { turns }) });
  }
  if (!("salt" in line)) return undefined;
  corpus.hash.adopt(validate(saltSchema, line.salt, "", "The salt"));
  return () => undefined;
}

/** A memory of a file, with what its transaction needs. */
interface PreparedMemory {
  line: MemoryLine;
  hash: string;
  vectors: unknown;
}

async function prepareMemory(corpus: Corpus, value: unknown): Promise<PreparedMemory> {
  const checked = validate(memorySchema, value, "", "The memory");
  // SAFETY: the schema has checked it. Entries keep the order of their members.
  const { log } = value as MemoryLine;
  const line = { ...checked, log };
  const hash = await corpus.hash.of(line.userId, line.text);
  return { line, hash, vectors: await corpus.ports.index.prepare([line.text]) };
}

function restoreMemory(corpus: Corpus, { line, hash, vectors }: PreparedMemory): void {
  const { text, sources, parts, log, ...same } = line;
  const n = numberOf(line.id) ?? 0;
  const long = isLong(text);
  const memory: StoredMemory = { ...same, n, hash, long, ref: null, content: long ? excerptOf(text) : text };
  const { memories, pending } = corpus.rows;
  corpus.rows.restore(memory);
  // SAFETY: the schema has checked what reads need of an entry.
  for (const entry of log as unknown as MemoryLogEntry[]) memories.addLog(n, entry);
  for (const one of sources) memories.addSource(n, one);
  for (const id of parts) memories.addPart(n, { n: numberOf(id) ?? 0, id });
  if (long) memories.putText(n, memory.version, text);
  if (isFound(memory)) corpus.ports.index.put([indexEntry(memory, text)], vectors);
  pending.note(n);
}
