/**
 * Applies the operations of a consolidation.
 *
 * CONSOLIDATE-1  A consolidation changes only memories of its group, at the versions that it received. If a part of a summary has changed
 *                or was erased since, the summary is refused.
 * CONSOLIDATE-2  A summary has the sources of all its parts. It is tainted if a part is tainted. Its parts are archived, not deleted.
 * CONSOLIDATE-3  All memories of a group have one subject. A summary has the same subject, so it shows nothing to readers who cannot see
 *                its parts.
 */
import type { MemoryOutcome } from "../../protocol/memory-schemas.ts";
import { conflict, DramatisError, invalid, notFound } from "../../shared/errors.ts";
import type { Corpus } from "../corpus/corpus.ts";
import { type Cause, staleVersion } from "../corpus/decide.ts";
import { type CheckedOperation, checkOperation, checkSizes } from "../corpus/schemas.ts";
import type { StoredMemory } from "../corpus/stored-memory.ts";

const DEFAULT_TYPE = "summary";
const MAX_OPERATIONS = 100;

/** The number and the version of a memory that a consolidation received. */
export type Member = readonly [n: number, version: number];

export interface PreparedConsolidation {
  operations: { operation: CheckedOperation | null; hash: string }[];
  vectors: unknown;
}

/** Reads the input of `applyConsolidation` before its transaction. Drops operations beyond the limit. */
export async function prepareConsolidation(
  corpus: Corpus,
  userId: string | null,
  given: readonly unknown[],
): Promise<PreparedConsolidation> {
  const checked = given.slice(0, MAX_OPERATIONS).map(checkOperation);
  const texts = checked.flatMap((operation) => contentOf(operation) ?? []);
  const operations = checked.map(async (operation) => {
    const text = contentOf(operation);
    return { operation, hash: text === undefined ? "" : await corpus.hash.of(userId, text) };
  });
  return { operations: await Promise.all(operations), vectors: await corpus.ports.index.prepare(texts) };
}

function contentOf(operation: CheckedOperation | null): string | undefined {
  return operation !== null && "content" in operation ? operation.content : undefined;
}

/** Applies operations in the current transaction. If an operation is refused, the others still apply. */
export function applyConsolidation(
  corpus: Corpus,
  members: readonly Member[],
  prepared: PreparedConsolidation,
): MemoryOutcome[] {
  const given = new Map(members);
  return prepared.operations.map(({ operation, hash }): MemoryOutcome => {
    try {
      return corpus.rows.attempt(() =>
        applyOperation(corpus, given, { operation, hash, vectors: prepared.vectors }),
      );
    } catch (error) {
      if (!(error instanceof DramatisError)) throw error;
      return { status: "refused", code: error.code, message: error.message };
    }
  });
}

interface PreparedOperation {
  operation: CheckedOperation | null;
  hash: string;
  vectors: unknown;
}

function applyOperation(
  corpus: Corpus,
  given: Map<number, number>,
  prepared: PreparedOperation,
): MemoryOutcome {
  const { operation } = prepared;
  if (operation === null) throw invalid("The operation is not valid.");
  checkSizes("content" in operation ? operation : {});
  const cause = causeOf(corpus);
  if (operation.op === "write") return writeSummary(corpus, given, operation, prepared);
  if (!("memoryId" in operation))
    throw invalid("Name the memory by its `memoryId`. A consolidation cannot use keys.");
  const memory = memberById(corpus, given, operation.memoryId);
  switch (operation.op) {
    case "update": {
      const { op: _, memoryId: __, ...change } = operation;
      refuseErased(corpus, prepared.hash);
      const after = corpus.applyChange(memory, change, { ...cause, tainted: memory.tainted }, prepared);
      return applied(memory, after, given);
    }
    case "archive":
      return applied(memory, corpus.applyArchive(memory, cause), given);
    case "delete":
      corpus.applyErasure(memory, { isErased: false, hash: null });
      given.delete(memory.n);
      return { status: "applied", memoryId: memory.id, version: memory.version + 1 };
    default:
      return operation satisfies never;
  }
}

function writeSummary(
  corpus: Corpus,
  given: Map<number, number>,
  operation: Extract<CheckedOperation, { op: "write" }>,
  { hash, vectors }: PreparedOperation,
): MemoryOutcome {
  const { op: _, derivedFrom, subjectName: __, key: ___, ...input } = operation;
  const parts =
    derivedFrom === undefined
      ? [...given.keys()].map((n) => member(corpus, given, n))
      : [...new Set(derivedFrom)].map((id) => memberById(corpus, given, id));
  const [first] = parts;
  if (first === undefined) throw invalid("A summary needs at least one memory in `derivedFrom`.");
  refuseErased(corpus, hash);
  const cause = causeOf(corpus);
  const conversations = new Set(parts.map(({ conversationId }) => conversationId));
  const subject = {
    userId: first.userId,
    // A summary of several conversations of a user belongs to the user, not to a conversation.
    conversationId: conversations.size === 1 ? first.conversationId : null,
    hash,
  };
  const isTainted = parts.some(({ tainted }) => tainted);
  const summary = corpus.applyWrite(
    subject,
    { ...input, type: input.type ?? DEFAULT_TYPE },
    { ...cause, tainted: isTainted },
    vectors,
  );
  for (const part of parts) {
    linkPart(corpus, summary, part);
    applied(part, corpus.applyArchive(part, cause), given);
  }
  return { status: "applied", memoryId: summary.id, version: summary.version };
}

/** Records that `part` is a part of `summary`, and adds its sources to `summary`. */
export function linkPart(corpus: Corpus, summary: StoredMemory, part: StoredMemory): void {
  const { memories } = corpus.rows;
  memories.addPart(summary.n, part);
  for (const source of memories.sources(part.n)) memories.addSource(summary.n, source);
}

export function causeOf(corpus: Corpus): Cause {
  return { now: corpus.ports.clock.now(), by: { kind: "consolidation" }, sources: [], tainted: false };
}

function refuseErased(corpus: Corpus, hash: string): void {
  if (hash !== "" && corpus.rows.tombstones.hasHash(hash))
    throw conflict("This text was erased. A consolidation cannot restore it.");
}

function applied(before: StoredMemory, after: StoredMemory, given: Map<number, number>): MemoryOutcome {
  if (after.version === before.version) return { status: "unchanged", memoryId: after.id };
  given.set(after.n, after.version);
  return { status: "applied", memoryId: after.id, version: after.version };
}

function memberById(corpus: Corpus, given: ReadonlyMap<number, number>, id: string): StoredMemory {
  const memory = corpus.findById(id);
  if (memory === undefined || !given.has(memory.n))
    throw notFound("The memory is not part of this consolidation, or it was erased since.");
  return member(corpus, given, memory.n);
}

/** Returns a memory of the group. Throws `NOT_FOUND`, or `CONFLICT` if its version has changed (CONSOLIDATE-1). */
export function member(corpus: Corpus, given: ReadonlyMap<number, number>, n: number): StoredMemory {
  const memory = corpus.rows.memories.find(n);
  const version = given.get(n);
  if (memory === undefined || version === undefined || memory.hidden)
    throw notFound("A part of the summary was erased since.");
  if (memory.version !== version) throw staleVersion(memory, version);
  return memory;
}
