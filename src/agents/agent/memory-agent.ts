/** The part of the `Agent` actor that serves the agent's memory: its RPC, and the envelopes of conversations. */
import { Corpus } from "../../memory/corpus/corpus.ts";
import { eraseSources } from "../../memory/corpus/erasures.ts";
import { Extractions } from "../../memory/corpus/extraction.ts";
import { PlainIndex } from "../../memory/corpus/plain-index.ts";
import { erasedSourcesSchema, extractedSchema } from "../../memory/corpus/schemas.ts";
import { systemClock, systemIds } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import {
  MEMORY_EXTRACTED,
  MEMORY_SOURCES_ERASED,
  type MemoryApi,
  type MemoryChange,
  type MemoryFilter,
  type MemoryInput,
  type MemoryQuery,
  type MemoryReader,
  type MemoryStatus,
  type MemoryWriter,
} from "../../protocol/memory.ts";
import { asResult, DramatisError } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import type { Delivery } from "../base/mailbox/handlers.ts";
import { SessionAgent } from "../base/session-agent.ts";

/** The identity of the agent whose memory it is. */
export interface MemoryOwner {
  id: string;
  tenant: string;
}

export abstract class MemoryAgent<Env extends Cloudflare.Env> extends SessionAgent<Env> implements MemoryApi {
  readonly #corpus: Corpus;
  readonly #extractions: Extractions;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { database, keyValue } = durableStorage(ctx.storage);
    this.#corpus = new Corpus({
      database,
      keyValue,
      clock: systemClock,
      ids: systemIds,
      index: new PlainIndex(database),
      objects: () => null,
      agent: () => this.memoryOwner(),
      noted: () => Promise.resolve(),
    });
    this.#extractions = new Extractions(this.#corpus);
    this.mailbox.receivesAfter(
      MEMORY_EXTRACTED,
      extractedSchema,
      (body) => this.#extractions.prepare(body),
      (body, delivery, prepared) => {
        checkConversation(delivery, body.source.conversationId);
        const { outcomes, armed } = this.#extractions.apply(body, prepared);
        delivery.afterCommit(() => armed);
        // SAFETY: outcomes are plain data.
        return { outcomes } as unknown as Json;
      },
    );
    this.mailbox.receives(MEMORY_SOURCES_ERASED, erasedSourcesSchema, (body, delivery) => {
      checkConversation(delivery, body.conversationId);
      const armed = eraseSources(this.#corpus, body);
      delivery.afterCommit(() => armed);
      return null;
    });
  }

  /** Returns the agent. Throws `NOT_FOUND` if it was never created. */
  protected abstract memoryOwner(): MemoryOwner;

  async writeMemories(writer: MemoryWriter, inputs: MemoryInput[]) {
    return asResult(() => this.#corpus.write(writer, inputs));
  }

  async readMemory(reader: MemoryReader, id: string) {
    return asResult(() => this.#corpus.read(reader, id));
  }

  async searchMemories(reader: MemoryReader, query: MemoryQuery) {
    return asResult(() => this.#corpus.search(reader, query));
  }

  async listMemories(reader: MemoryReader, options?: PageOptions & MemoryFilter) {
    return asResult(() => this.#corpus.list(reader, options));
  }

  async updateMemory(writer: MemoryWriter, id: string, change: MemoryChange) {
    return asResult(() => this.#corpus.update(writer, id, change));
  }

  async deleteMemory(writer: MemoryWriter, id: string) {
    return asResult(() => this.#corpus.delete(writer, id));
  }

  async archiveMemory(writer: MemoryWriter, id: string) {
    return asResult(() => this.#corpus.archive(writer, id));
  }

  async whyMemory(reader: MemoryReader, id: string) {
    return asResult(() => this.#corpus.why(reader, id));
  }

  async offerMemories(reader: MemoryReader, offer: { operationId: string; query: string; limit?: number }) {
    return asResult(() => this.#extractions.offer(reader, offer));
  }

  async memoryStatus() {
    return asResult((): MemoryStatus => {
      this.memoryOwner();
      const { memories, archived, pending } = this.#corpus.status();
      return { memories, archived, pending: { records: pending, embeddings: 0 }, embedder: null };
    });
  }
}

/** Throws `INVALID_INPUT` unless the conversation itself sends. */
function checkConversation({ envelope: { from } }: Delivery, conversationId: string): void {
  if (from.kind === "conversation" && from.id === conversationId) return;
  throw new DramatisError("INVALID_INPUT", "Only the conversation itself can send this envelope.");
}
