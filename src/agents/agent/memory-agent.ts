/** The memory part of the `Agent` actor: its RPC, and the envelopes of conversations. */
import type { Upkeep } from "../../library/registry/upkeep.ts";
import { eraseSources } from "../../memory/corpus/erasures.ts";
import { IndexPool } from "../../memory/corpus/index/pool.ts";
import { erasedSourcesSchema, extractedSchema } from "../../memory/corpus/schemas.ts";
import type { VectorIndex } from "../../ports/vector-index.ts";
import type { PinnedHook } from "../../protocol/definitions.ts";
import {
  MEMORY_EXTRACTED,
  MEMORY_SOURCES_ERASED,
  type MemoryApi,
  type MemoryChange,
  type MemoryFilter,
  type MemoryInput,
  type MemoryQuery,
  type MemoryReader,
  type MemoryWriter,
} from "../../protocol/memory.ts";
import { asResult, DramatisError } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import { DurableActor } from "../base/durable-actor.ts";
import type { Delivery } from "../base/mailbox/handlers.ts";
import { newOperationId } from "../base/mailbox/operation-id.ts";
import type { ConsolidationCall } from "./consolidation-call.ts";
import { AgentMemory, type MemoryStores } from "./memory.ts";
import type { MemoryEmbedders } from "./memory-embedder.ts";

/** The default pool of indexes of an isolate. */
export const indexes = new IndexPool();

export interface MemoryOwner {
  id: string;
  tenant: string;
}

export abstract class MemoryAgent<Env extends Cloudflare.Env> extends DurableActor<Env> implements MemoryApi {
  readonly #memory: AgentMemory;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#memory = new AgentMemory({
      ...this.platform,
      search: {
        pool: this.memoryPool(),
        vectors: () => this.memoryVectors(),
        embedder: () => this.memoryEmbedders().embedder(),
        formerEmbedder: (id) => this.memoryEmbedders().formerEmbedder(id),
      },
      stores: {
        objects: () => this.memoryStores().objects(),
        records: () => this.memoryStores().records(),
      },
      wakeup: this.wakeups.add("memory", () => (this.isDeleted ? null : this.#memory.wake())),
      upkeep: {
        upkeep: () => this.memoryUpkeep(),
        run: (hook, call) => this.consolidate(hook, call),
        newOperationId,
        wakeup: this.ownWakeup("upkeep", () => (this.isDeleted ? null : this.#memory.upkeep.wake())),
      },
      agent: () => this.memoryOwner(),
    });
    this.mailbox.receivesAfter(
      MEMORY_EXTRACTED,
      extractedSchema,
      (body) => this.#memory.extractions.prepare(body),
      (body, delivery, prepared) => {
        checkConversation(delivery, body.source.conversationId);
        const { outcomes, armed } = this.#memory.extractions.apply(body, prepared);
        delivery.afterCommit(() => this.#committed(armed));
        // SAFETY: outcomes are plain data.
        return { outcomes } as unknown as Json;
      },
    );
    this.mailbox.receives(MEMORY_SOURCES_ERASED, erasedSourcesSchema, (body, delivery) => {
      checkConversation(delivery, body.conversationId);
      if (body.turns === undefined) this.conversationDeleted(body.conversationId);
      const armed = eraseSources(this.#memory.corpus, body);
      delivery.afterCommit(() => this.#committed(armed));
      return null;
    });
  }

  protected get corpus() {
    return this.#memory.corpus;
  }

  /** Returns the agent that owns the memory. Throws `NOT_FOUND` if it was never created. */
  protected abstract memoryOwner(): MemoryOwner;

  /** Throws `NOT_FOUND` with ids of other agents if the agent does not exist. */
  protected abstract checkExists(): Promise<void>;

  /** Runs an RPC body of an agent that must exist. */
  protected ofAgent<Value>(body: () => Value | Promise<Value>) {
    return asResult(() => this.checkExists().then(body));
  }

  protected abstract get isDeleted(): boolean;

  /** Removes a deleted conversation from the agent's index, in the current transaction. */
  protected abstract conversationDeleted(id: string): void;

  protected abstract memoryUpkeep(): Promise<Upkeep>;

  /** Runs a consolidation. Resolves to `undefined` while it runs. */
  protected abstract consolidate(hook: PinnedHook, call: ConsolidationCall): Promise<Json | undefined>;

  /** Reschedules the upkeep in the transaction that changes the persona. Resolves when the wake-up is armed. */
  protected personaChanged(): Promise<void> {
    return this.#memory.upkeep.personaChanged();
  }

  protected abstract memoryStores(): MemoryStores;

  protected abstract memoryEmbedders(): MemoryEmbedders;

  /** Returns the vector store, or `null` if the deployment has no vector store. */
  protected abstract memoryVectors(): VectorIndex | null;

  protected abstract memoryPool(): IndexPool;

  /** As `AgentMemory.retainVectors`. */
  protected retainVectors() {
    return this.#memory.retainVectors();
  }

  async writeMemories(writer: MemoryWriter, inputs: MemoryInput[]) {
    return this.ofAgent(() => this.#memory.corpus.write(writer, inputs));
  }

  async readMemory(reader: MemoryReader, id: string) {
    return this.ofAgent(() => this.#memory.corpus.read(reader, id));
  }

  async searchMemories(reader: MemoryReader, query: MemoryQuery) {
    return this.ofAgent(() => this.#memory.corpus.search(reader, query));
  }

  async listMemories(reader: MemoryReader, options?: PageOptions & MemoryFilter) {
    return this.ofAgent(() => this.#memory.corpus.list(reader, options));
  }

  async updateMemory(writer: MemoryWriter, id: string, change: MemoryChange) {
    return this.ofAgent(() => this.#memory.corpus.update(writer, id, change));
  }

  async deleteMemory(writer: MemoryWriter, id: string) {
    return this.ofAgent(() => this.#memory.corpus.delete(writer, id));
  }

  async archiveMemory(writer: MemoryWriter, id: string) {
    return this.ofAgent(() => this.#memory.corpus.archive(writer, id));
  }

  async whyMemory(reader: MemoryReader, id: string) {
    return this.ofAgent(() => this.#memory.corpus.why(reader, id));
  }

  async offerMemories(reader: MemoryReader, offer: { operationId: string; query: string; limit?: number }) {
    return this.ofAgent(() => this.#memory.extractions.offer(reader, offer));
  }

  async memoryStatus() {
    return this.ofAgent(() => this.#memory.status());
  }

  /** Starts to bring the copies up to date. Resolves when their wake-up is armed. */
  #committed(armed: Promise<void>): Promise<void> {
    this.#memory.publish();
    return armed;
  }
}

/** Throws `INVALID_INPUT` unless the conversation itself is the sender. */
function checkConversation({ envelope: { from } }: Delivery, conversationId: string): void {
  if (from.kind === "conversation" && from.id === conversationId) return;
  throw new DramatisError("INVALID_INPUT", "Only the conversation itself can send this envelope.");
}
