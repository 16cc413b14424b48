/**
 * Writes the memories of an agent as lines of its export, and imports them.
 *
 * BACKUP-5  An imported memory keeps its id, text, log and sources, and searches find it as before. Its version increases by one, and its
 *           log says that an import restored it. Older log entries come from the file unchecked. An import fills an agent without memories,
 *           so an imported text never replaces a newer text.
 * BACKUP-9  A file contains all erased sources. For each erased memory it contains the id, the time, the salted hash and the salt. So an
 *           extraction after an import cannot restore erased texts.
 * BACKUP-16  A line contains no data that was erased before the line is written. A file contains the marks of all erasures before its end,
 *            because an erasure aborts the export. Each memory has its state at the time of its line.
 * BACKUP-17  An import accepts every line that an export writes. Long lists of sources, parts and log entries continue in bounded `more`
 *            lines. If a memory changes between its own lines, the export aborts.
 */
import { conflict, type DramatisError, invalid } from "../../shared/errors.ts";
import { toIso } from "../../shared/time.ts";
import { validate } from "../../shared/validation.ts";
import { checkErasedFirst, checkMemory, checkMore, checkTombstone } from "./backup-order.ts";
import { BackupRows } from "./backup-rows.ts";
import {
  checkPast,
  erasedSourceSchema,
  type MemoryLine,
  type MoreLine,
  memoryLineSchema,
  moreLineSchema,
  saltSchema,
  tombstoneSchema,
} from "./backup-schemas.ts";
import type { Corpus } from "./corpus.ts";
import { indexEntry } from "./corpus-rows.ts";
import { numberOf } from "./memory-id.ts";
import { excerptOf, isFound, isLong, type StoredMemory } from "./stored-memory.ts";

/**
 * Yields the salt, the erased entries and then each memory, ascending by number. Throws `UNAVAILABLE` while a text cannot be read, and
 * `CONFLICT` (BACKUP-16).
 */
export async function* memoryLines(corpus: Corpus): AsyncGenerator<Record<string, unknown>> {
  const before = corpus.rows.erasures;
  const check = () => {
    if (corpus.rows.erasures !== before) throw changedMeanwhile();
  };
  for await (const line of allLines(corpus)) {
    check();
    yield line;
  }
  check();
}

async function* allLines(corpus: Corpus): AsyncGenerator<Record<string, unknown>> {
  const { memories, tombstones, erased } = corpus.rows;
  for (const erasedSource of erased.all()) yield { erasedSource };
  if (!corpus.exists) return;
  const { salt } = corpus.hash;
  if (salt !== undefined) yield { salt };
  for (const { n: _, ...tombstone } of tombstones.all()) yield { erasedMemory: tombstone };
  const rows = new BackupRows(corpus.ports.database, memories);
  for (let n = rows.next(0); n !== undefined; n = rows.next(n)) yield* linesOf(corpus, rows, n);
}

/** Yields the lines of one memory: its state with the first piece of its lists, then the other pieces (BACKUP-17). */
async function* linesOf(
  corpus: Corpus,
  rows: BackupRows,
  n: number,
): AsyncGenerator<Record<string, unknown>> {
  const { memories } = corpus.rows;
  let [memory, text] = [memories.find(n), ""];
  for (let version = 0; memory !== undefined && memory.version !== version; memory = memories.find(n)) {
    version = memory.version;
    text = await corpus.texts.of(memory);
  }
  if (memory === undefined) return;
  const { n: _n, content: _content, long: _long, ref: _ref, hash: _hash, ...line } = memory;
  let isFirst = true;
  for (const lists of rows.lists(n)) {
    if (memories.find(n)?.version !== line.version) throw changedMeanwhile();
    yield isFirst ? { memory: { ...line, text, ...lists } } : { more: { id: line.id, ...lists } };
    isFirst = false;
  }
}

function changedMeanwhile(): DramatisError {
  return conflict("The memory changed during its export. Export the agent again.", {
    retriable: true,
  });
}

/**
 * Reads a line and returns a function that stores it in a transaction. Returns `undefined` if the line is not about memory. Throws
 * `INVALID_INPUT`. The salt applies at once, because later lines need it.
 */
export async function prepareLine(
  corpus: Corpus,
  line: Record<string, unknown>,
): Promise<(() => void) | undefined> {
  if ("memory" in line) {
    const prepared = await prepareMemory(corpus, line.memory);
    return () => restoreMemory(corpus, prepared);
  }
  if ("more" in line) {
    const more = validate(moreLineSchema, line.more, "", "The memory");
    return () => {
      checkMore(corpus, more);
      addLists(corpus, more);
    };
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
    const { conversationId, turnId, entries } = validate(
      erasedSourceSchema,
      line.erasedSource,
      "",
      "The source",
    );
    const turns = turnId === undefined ? undefined : [{ turnId, ...(entries && { entries }) }];
    return () => {
      checkErasedFirst(corpus);
      corpus.rows.erased.put({ conversationId, ...(turns && { turns }) });
    };
  }
  if (!("salt" in line)) return undefined;
  const salt = validate(saltSchema, line.salt, "", "The salt");
  const { salt: known = salt } = corpus.hash;
  if (known !== salt) throw invalid("The salt must occur once, before the memories.");
  corpus.hash.adopt(salt);
  return () => checkErasedFirst(corpus);
}

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
  const { text, sources: _sources, parts: _parts, log: _log, version: exported, ...same } = line;
  const n = numberOf(line.id) ?? 0;
  const long = isLong(text);
  const version = exported + 1;
  const content = long ? excerptOf(text) : text;
  const memory: StoredMemory = { ...same, version, n, hash, long, ref: null, content };
  const { memories, pending } = corpus.rows;
  checkMemory(corpus, line);
  corpus.rows.restore(memory);
  const at = toIso(corpus.ports.clock.now());
  memories.addLog(n, { version, change: "restored", at, by: { kind: "import" }, sources: [] });
  addLists(corpus, line);
  if (long) memories.putText(n, version, text);
  if (isFound(memory)) corpus.ports.index.put([indexEntry(memory, text)], vectors);
  pending.note(n);
}

function addLists({ rows: { memories } }: Corpus, { id, sources, parts, log }: MoreLine): void {
  const n = numberOf(id) ?? 0;
  for (const entry of log) memories.addLog(n, entry);
  for (const one of sources) memories.addSource(n, one);
  for (const part of parts) memories.addPart(n, { n: numberOf(part) ?? 0, id: part });
}
