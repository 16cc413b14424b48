/**
 * Checks a line of an agent's export against the lines before it, in the transaction that stores it.
 *
 * BACKUP-12  An export lists erased sources and erased memories first, then memories. Both lists ascend by number. So a number cannot occur
 *            twice.
 * BACKUP-13  A source or memory that the file marks as erased stays erased. A memory that comes from it is refused.
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

/** Throws `INVALID_INPUT` if an erased source or memory follows a memory. */
export function checkErasedFirst({ ports: { database } }: Corpus): void {
  if (last(database, LAST_MEMORY) > 0)
    throw wrong("", "Erased entries and the salt must come before the memories.");
}

/** Throws `INVALID_INPUT` unless the number of an erased memory is above all numbers before it. */
export function checkTombstone(corpus: Corpus, n: number): void {
  checkErasedFirst(corpus);
  checkFollows(last(corpus.ports.database, LAST_TOMBSTONE), n);
}

/**
 * Throws `INVALID_INPUT` unless the number of a memory is above all numbers before it. Also throws it for a memory that was erased, or that
 * comes from an erased source or memory.
 */
export function checkMemory(corpus: Corpus, line: MoreLine): void {
  const { tombstones } = corpus.rows;
  const n = numberOf(line.id) ?? 0;
  checkFollows(last(corpus.ports.database, LAST_MEMORY), n);
  if (tombstones.find(n) !== undefined)
    throw wrong("/id", `The file marks the memory with the number ${n} as erased.`);
  checkLists(corpus, line);
}

/** Throws `INVALID_INPUT` if a line does not continue the memory before it (BACKUP-17), or as `checkMemory`. */
export function checkMore(corpus: Corpus, line: MoreLine): void {
  const { memories } = corpus.rows;
  const n = last(corpus.ports.database, LAST_MEMORY);
  const memory = memories.find(n);
  if (memory?.id !== line.id)
    throw wrong("/id", "A continuation of a memory must follow the other lines of that memory.");
  const oldest = last(corpus.ports.database, OLDEST_ENTRY, n);
  const [entry] = line.log;
  if (entry !== undefined && entry.version >= oldest)
    throw wrong("/log", `Must continue before the version ${oldest}.`);
  // The import increased the version of the memory.
  if (line.sources.some(({ statedVersion = 0 }) => statedVersion >= memory.version))
    throw wrong("/sources", "Must not have a version above the version of the memory.");
  checkLists(corpus, line);
}

function checkLists(corpus: Corpus, line: MoreLine): void {
  const { memories, tombstones, erased } = corpus.rows;
  const source = line.sources.findIndex((one) => erased.has(one));
  if (source >= 0) throw wrong(`/sources/${source}`, "The file marks this source as erased.");
  const known = memories.byNumbers(line.parts.map((part) => numberOf(part) ?? 0));
  for (const [index, id] of line.parts.entries()) {
    const part = known.get(numberOf(id) ?? 0);
    if (part !== undefined && part.id !== id)
      throw wrong(`/parts/${index}`, `The memory with the number ${part.n} has another id.`);
    if (tombstones.hasErased([id])) throw wrong(`/parts/${index}`, "The file marks this memory as erased.");
  }
}

function checkFollows(before: number, n: number): void {
  if (n > before) return;
  const what = n === before ? `The number ${n} occurs twice` : `The number ${n} comes after ${before}`;
  throw wrong("/id", `${what}: each number must occur once, in ascending order.`);
}

function last(database: SqlDatabase, statement: string, ...values: number[]): number {
  return database.all<{ n: number | null }>(statement, ...values)[0]?.n ?? 0;
}

function wrong(path: string, message: string): DramatisError {
  return invalidAt(path, message, path === "" ? message : `The memory is not valid: ${path}: ${message}`);
}
