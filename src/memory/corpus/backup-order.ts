/**
 * Checks of a line of an agent's export against the lines before it, in the transaction that stores them.
 *
 * BACKUP-12  A file has what was erased first, then the memories, each in the order of their numbers. So no number is there twice, whether of two
 *            memories, of two erased ones, or of a memory and an erased one.
 * BACKUP-13  What a file says was erased stays so: it has no memory that comes from an erased source, or that was made of an erased memory.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { DramatisError } from "../../shared/errors.ts";
import { invalidAt } from "../../shared/validation.ts";
import type { MoreLine } from "./backup-schemas.ts";
import type { Corpus } from "./corpus.ts";
import { numberOf } from "./memory-id.ts";

const LAST_MEMORY = "SELECT MAX(n) AS n FROM memories";
const OLDEST_ENTRY = "SELECT MIN(version) AS n FROM memory_log WHERE n = ?";
const LAST_TOMBSTONE = "SELECT MAX(n) AS n FROM memory_tombstones";

/** Throws `INVALID_INPUT` for a line of something erased that comes after a memory. */
export function checkErasedFirst({ ports: { database } }: Corpus): void {
  if (last(database, LAST_MEMORY) > 0)
    throw wrong("", "An export has what was erased, and the salt, before the memories.");
}

/** Throws `INVALID_INPUT` for an erased memory whose number is not above those before. */
export function checkTombstone(corpus: Corpus, n: number): void {
  checkErasedFirst(corpus);
  checkFollows(last(corpus.ports.database, LAST_TOMBSTONE), n);
}

/** Throws `INVALID_INPUT` for a memory whose number is not above those before, or that the file says was erased, or that comes from what was. */
export function checkMemory(corpus: Corpus, line: MoreLine): void {
  const { tombstones } = corpus.rows;
  const n = numberOf(line.id) ?? 0;
  checkFollows(last(corpus.ports.database, LAST_MEMORY), n);
  if (tombstones.find(n) !== undefined)
    throw wrong("/id", `The file says that the memory with the number ${n} was erased.`);
  checkLists(corpus, line);
}

/** Throws `INVALID_INPUT` for a line that does not go on with the memory before it (BACKUP-17), or as `checkMemory`. */
export function checkMore(corpus: Corpus, line: MoreLine): void {
  const { memories } = corpus.rows;
  const n = last(corpus.ports.database, LAST_MEMORY);
  const memory = memories.find(n);
  if (memory?.id !== line.id)
    throw wrong("/id", "A line with more of a memory follows the lines of that memory.");
  const oldest = last(corpus.ports.database, OLDEST_ENTRY, n);
  const [entry] = line.log;
  if (entry !== undefined && entry.version >= oldest)
    throw wrong("/log", `Must go on before the version ${oldest}.`);
  // The import has given the memory a next version.
  if (line.sources.some(({ said = 0 }) => said >= memory.version))
    throw wrong("/sources", "Must have no version after that of the memory.");
  checkLists(corpus, line);
}

function checkLists(corpus: Corpus, line: MoreLine): void {
  const { memories, tombstones, erased } = corpus.rows;
  const source = line.sources.findIndex((one) => erased.has(one));
  if (source >= 0) throw wrong(`/sources/${source}`, "The file says that this source was erased.");
  const known = memories.byNumbers(line.parts.map((part) => numberOf(part) ?? 0));
  for (const [index, id] of line.parts.entries()) {
    const part = known.get(numberOf(id) ?? 0);
    if (part !== undefined && part.id !== id)
      throw wrong(`/parts/${index}`, `The memory with the number ${part.n} has another id.`);
    if (tombstones.hasErased([id]))
      throw wrong(`/parts/${index}`, "The file says that this memory was erased.");
  }
}

function checkFollows(before: number, n: number): void {
  if (n > before) return;
  const what = n === before ? `The number ${n} is there twice` : `The number ${n} comes after ${before}`;
  throw wrong("/id", `${what}: an export has each number once, in their order.`);
}

function last(database: SqlDatabase, statement: string, ...values: number[]): number {
  return database.all<{ n: number | null }>(statement, ...values)[0]?.n ?? 0;
}

function wrong(path: string, message: string): DramatisError {
  return invalidAt(path, message, path === "" ? message : `The memory is not valid: ${path}: ${message}`);
}
