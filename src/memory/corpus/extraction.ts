/**
 * Applies the extraction of a conversation to an agent's memory.
 *
 * EXTRACTED-1  The operations of an extraction apply once, even if they are delivered several times. Each operation has an outcome. If an
 *              operation is refused, the others still apply.
 * EXTRACTED-2  By id, an extraction changes only the memories that it was offered, at the versions that it saw. Neither an id nor a key can
 *              change a memory that is read-only for its conversation.
 * EXTRACTED-3  Equal texts of a user are one memory with the sources of all. In a persona's scope `conversation`, this holds per
 *              conversation (SAMETEXT-1).
 * EXTRACTED-4  An extraction cannot restore an erased text. It ignores a turn that recalled a memory that was erased later.
 * EXTRACTED-5  A text that an extraction derived from memories has their sources, too. Its own source alone does not state it, so it is
 *              erased with its parts (REDERIVE-1). It may derive only from memories older than the memory it changes.
 */
import type { MemoryReader, OfferedMemory } from "../../protocol/memory.ts";
import type { MemoryOutcome, MemorySource } from "../../protocol/memory-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { conflict, DramatisError, invalid, notFound } from "../../shared/errors.ts";
import { toIso } from "../../shared/time.ts";
import { validate } from "../../shared/validation.ts";
import type { Corpus } from "./corpus.ts";
import { type Cause, staleVersion } from "./decide.ts";
import { erasedSource } from "./erased-sources.ts";
import { Offers } from "./offers.ts";
import { textSubject } from "./rights.ts";
import { type CheckedOperation, checkOperation, checkSizes, type Extracted, offerSchema } from "./schemas.ts";
import type { StoredMemory } from "./stored-memory.ts";

const DEFAULT_OFFER = 20;

/** An operation with the hash of its text, or `null` if it is not valid. */
interface PreparedOperation {
  operation: CheckedOperation | null;
  hash: string;
}

export interface PreparedExtraction {
  operations: PreparedOperation[];
  vectors: unknown;
}

export class Extractions {
  readonly #offers: Offers;

  constructor(private readonly corpus: Corpus) {
    this.#offers = new Offers(corpus.ports.database);
  }

  get #now(): number {
    return this.corpus.ports.clock.now();
  }

  async offer(
    reader: MemoryReader,
    given: { operationId: string; query: string; limit?: number },
  ): Promise<OfferedMemory[]> {
    const { operationId, query, limit = DEFAULT_OFFER } = validate(offerSchema, given, "/offer");
    const { corpus } = this;
    if (!corpus.exists) return [];
    const before = this.#offers.find(operationId, this.#now);
    if (before !== undefined) return this.#stillOffered(reader, before.offered);
    const { matches } = await corpus.find(reader, { query, limit });
    const memories = matches.map(({ memory }) => memory);
    const offered = memories.map(({ id, version }): [string, number] => [id, version]);
    const tainted = memories.some((memory) => memory.tainted) ? { tainted: true as const } : {};
    await corpus.change(() => this.#offers.put(operationId, { offered, ...tainted }, this.#now));
    return memories.map((memory) => this.#toOffered(reader, memory));
  }

  /** Reads the input of `apply` before its transaction. */
  async prepare({ subject, operations }: Extracted): Promise<PreparedExtraction> {
    const { corpus } = this;
    corpus.ports.agent();
    const checked = operations.map(checkOperation);
    const prepared = checked.map(async (operation): Promise<PreparedOperation> => {
      if (operation === null || !("content" in operation) || operation.content === undefined)
        return { operation, hash: "" };
      const userId = "memoryId" in operation ? corpus.findById(operation.memoryId)?.userId : subject.userId;
      return { operation, hash: await corpus.hash.of(userId, operation.content) };
    });
    const texts = checked.flatMap((operation) =>
      operation !== null && "content" in operation && operation.content !== undefined
        ? [operation.content]
        : [],
    );
    return { operations: await Promise.all(prepared), vectors: await corpus.ports.index.prepare(texts) };
  }

  /** Applies operations in the current transaction, once (EXTRACTED-1). Resolves when the wake-up is armed. */
  apply(body: Extracted, prepared: PreparedExtraction): { outcomes: MemoryOutcome[]; armed: Promise<void> } {
    const { corpus } = this;
    corpus.createTables();
    const before = this.#offers.find(body.operationId, this.#now);
    if (before?.outcomes !== undefined) return { outcomes: before.outcomes, armed: Promise.resolve() };
    const offered = new Map(before?.offered ?? []);
    const reader: MemoryReader = { scope: body.scope, ...defined(body.subject) };
    const cause: Cause = {
      now: this.#now,
      by: {
        kind: "extraction",
        conversationId: body.source.conversationId,
        turnId: body.source.turnId,
      },
      sources: [body.source],
      tainted: body.tainted === true || before?.tainted === true,
    };
    const hasErased = corpus.rows.tombstones.hasErased(body.used);
    const isErased = corpus.rows.erased.has(body.source);
    const outcome = (one: PreparedOperation): MemoryOutcome => {
      if (isErased) return refused("CONFLICT", erasedSource().message);
      if (hasErased)
        return refused(
          "CONFLICT",
          "The turn recalled a memory that was erased since. No memory is learned from this turn.",
        );
      return this.#outcome(one, { body, reader, cause, offered, vectors: prepared.vectors });
    };
    const outcomes = corpus.rows.together(() => prepared.operations.map(outcome));
    this.#offers.put(body.operationId, { offered: before?.offered ?? [], outcomes }, this.#now);
    return { outcomes, armed: corpus.ports.noted() };
  }

  #outcome(prepared: PreparedOperation, context: Context): MemoryOutcome {
    try {
      return this.corpus.rows.attempt(() => this.#apply(prepared, context));
    } catch (error) {
      if (!(error instanceof DramatisError)) throw error;
      return refused(error.code, error.message);
    }
  }

  #apply({ operation, hash }: PreparedOperation, context: Context): MemoryOutcome {
    if (operation === null) return refused("INVALID_INPUT", "The operation is not valid.");
    const { corpus } = this;
    const { cause, vectors, offered } = context;
    checkSizes("content" in operation ? operation : {});
    if (operation.op === "write") return this.#write(operation, hash, context);
    const memory =
      "key" in operation
        ? this.#withKey(operation.key, context)
        : corpus.rights.changeable(context.reader, this.#offered(operation.memoryId, offered));
    switch (operation.op) {
      case "update": {
        if (hash !== "" && corpus.rows.tombstones.hasHash(hash)) throw erasedText();
        const { op: _, memoryId: __, ...change } = operation;
        const after = corpus.applyChange(memory, change, cause, { hash, vectors });
        return this.#applied(memory, after, offered);
      }
      case "archive":
        return this.#applied(memory, corpus.applyArchive(memory, cause), offered);
      case "delete":
        corpus.applyErasure(memory, { isErased: false, hash: null });
        offered.delete(memory.id);
        return { status: "applied", memoryId: memory.id, version: memory.version + 1 };
    }
  }

  #write(
    operation: Extract<CheckedOperation, { op: "write" }>,
    hash: string,
    { body, reader, cause: given, vectors, offered }: Context,
  ): MemoryOutcome {
    const { corpus } = this;
    const { op: _, derivedFrom = [], subjectName: __, ...input } = operation;
    if (corpus.rows.tombstones.hasHash(hash)) throw erasedText();
    const parts = derivedFrom.map((id) => this.#offered(id, offered));
    const cause = { ...given, isDerived: parts.length > 0 };
    const { userId = null, conversationId = null } = body.subject;
    const subject = textSubject(reader, { userId, conversationId });
    const equal = corpus.mergeEqualText(reader, { hash, subject, given: {} }, cause);
    if (equal !== undefined) return { status: "unchanged", memoryId: equal.id };
    const time = input.time ?? body.time;
    const { key, ...fields } = input;
    const known = key === undefined ? undefined : corpus.rights.withKey(reader, key, subject);
    if (known !== undefined) {
      if (parts.some(({ n }) => n > known.n)) throw newerPart();
      const after = corpus.applyChange(known, { ...fields, key, time }, cause, { hash, vectors });
      for (const part of parts) this.#derive(after, part);
      return this.#applied(known, after, offered);
    }
    const stored = corpus.applyWrite({ userId, conversationId, hash }, { ...input, time }, cause, vectors);
    for (const part of parts) this.#derive(stored, part);
    return { status: "applied", memoryId: stored.id, version: stored.version };
  }

  /** Returns the memory with a key that the conversation may change. Throws `NOT_FOUND`. */
  #withKey(key: string, { body, reader }: Context): StoredMemory {
    const { userId = null, conversationId = null } = body.subject;
    const { rights } = this.corpus;
    const memory = rights.withKey(reader, key, textSubject(reader, { userId, conversationId }));
    if (memory === undefined) throw notFound(`This conversation can change no memory with the key "${key}".`);
    return memory;
  }

  /** Records a part of a memory and adds its sources. A new text may derive from its own previous text. */
  #derive(memory: StoredMemory, part: StoredMemory): void {
    if (part.n === memory.n) return;
    const { memories } = this.corpus.rows;
    memories.addPart(memory.n, part);
    for (const source of memories.sources(part.n)) memories.addSource(memory.n, source);
  }

  #applied(before: StoredMemory, after: StoredMemory, offered: Map<string, number>): MemoryOutcome {
    if (after.version === before.version) return { status: "unchanged", memoryId: after.id };
    if (offered.has(after.id)) offered.set(after.id, after.version);
    return { status: "applied", memoryId: after.id, version: after.version };
  }

  /** Returns an offered memory. Throws `NOT_FOUND`, or `CONFLICT` if its version has changed. */
  #offered(id: string, offered: ReadonlyMap<string, number>): StoredMemory {
    const version = offered.get(id);
    const memory = version === undefined ? undefined : this.corpus.findById(id);
    if (version === undefined || memory === undefined || memory.hidden)
      throw notFound("The extraction was not offered this memory.");
    if (memory.version !== version) throw staleVersion(memory, version);
    return memory;
  }

  #stillOffered(reader: MemoryReader, offered: readonly [string, number][]): OfferedMemory[] {
    return offered.flatMap(([id, version]) => {
      const memory = this.corpus.findById(id);
      return memory?.version === version && !memory.hidden ? [this.#toOffered(reader, memory)] : [];
    });
  }

  #toOffered(reader: MemoryReader, memory: StoredMemory): OfferedMemory {
    const { id, version, type, content, key, time, validFrom } = memory;
    return {
      id,
      version,
      type,
      content,
      ...defined({ key: key ?? undefined, time: time === null ? undefined : toIso(time) }),
      validFrom: toIso(validFrom),
      ...(!this.corpus.rights.mayChange(reader, memory) && { readOnly: true as const }),
    };
  }
}

interface Context {
  body: Omit<Extracted, "source"> & { source: MemorySource };
  reader: MemoryReader;
  cause: Cause;
  offered: Map<string, number>;
  vectors: unknown;
}

function erasedText(): DramatisError {
  return conflict("This text was erased. An extraction cannot restore it.");
}

function newerPart(): DramatisError {
  return invalid(
    "The memory with this key is older than a memory in `derivedFrom`. Write the text without the key.",
  );
}

function refused(code: string, message: string): MemoryOutcome {
  return { status: "refused", code, message };
}
