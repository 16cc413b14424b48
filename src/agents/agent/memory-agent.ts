/** The memory part of the `Agent` actor: its RPC, and the envelopes of conversations. */
import { eraseSources } from "../../memory/corpus/erasures.ts";
import { IndexPool } from "../../memory/corpus/index/pool.ts";
import { erasedSourcesSchema, extractedSchema } from "../../memory/corpus/schemas.ts";
import {
  MEMORY_EXTRACTED,
  MEMORY_SOURCES_ERASED,
  type MemoryApi,
  type MemoryFilter,
  type MemoryReader,
  type MemoryWriter,
} from "../../protocol/memory.ts";
import type { MemoryChange, MemoryInput, MemoryQuery } from "../../protocol/memory-requests.ts";
import { asResult, invalid } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import { DurableActor } from "../base/durable-actor.ts";
import type { Delivery } from "../base/mailbox/handlers.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import type { AgentMemory } from "./memory.ts";

/** The default pool of indexes of an isolate. */
export const indexes = new IndexPool();

/** Registers the handlers of the envelopes with what conversations have learned or erased. `erased` takes a deleted conversation. */
export function takeMemories(
  mailbox: Mailbox,
  memory: AgentMemory,
  erased: (conversationId: string) => void,
): void {
  /** Starts to bring the copies up to date. Resolves when their wake-up is armed. */
  const committed = (armed: Promise<void>): Promise<void> => {
    memory.publish();
    return armed;
  };
  mailbox.receivesAfter(
    MEMORY_EXTRACTED,
    extractedSchema,
    (body) => memory.extractions.prepare(body),
    (body, delivery, prepared) => {
      checkConversation(delivery, body.source.conversationId);
      const { outcomes, armed } = memory.extractions.apply(body, prepared);
      delivery.afterCommit(() => committed(armed));
      // SAFETY: outcomes are plain data.
      return { outcomes } as unknown as Json;
    },
  );
  mailbox.receives(MEMORY_SOURCES_ERASED, erasedSourcesSchema, (body, delivery) => {
    checkConversation(delivery, body.conversationId);
    if (body.turns === undefined) erased(body.conversationId);
    const armed = eraseSources(memory.corpus, body);
    delivery.afterCommit(() => committed(armed));
    return null;
  });
}

/** The RPC methods of an agent's memory. */
export abstract class MemoryAgent<Env extends Cloudflare.Env> extends DurableActor<Env> implements MemoryApi {
  protected abstract get memory(): AgentMemory;

  /** Throws `NOT_FOUND` with ids of other agents if the agent does not exist. */
  protected abstract checkExists(): Promise<void>;

  /** Runs an RPC body of an agent that must exist. */
  protected ofAgent<Value>(body: () => Value | Promise<Value>) {
    return asResult(() => this.checkExists().then(body));
  }

  async writeMemories(writer: MemoryWriter, inputs: MemoryInput[]) {
    return this.ofAgent(() => this.memory.corpus.write(writer, inputs));
  }

  async readMemory(reader: MemoryReader, id: string) {
    return this.ofAgent(() => this.memory.corpus.read(reader, id));
  }

  async searchMemories(reader: MemoryReader, query: MemoryQuery) {
    return this.ofAgent(() => this.memory.corpus.search(reader, query));
  }

  async listMemories(reader: MemoryReader, options?: PageOptions & MemoryFilter) {
    return this.ofAgent(() => this.memory.corpus.list(reader, options));
  }

  async updateMemory(writer: MemoryWriter, id: string, change: MemoryChange) {
    return this.ofAgent(() => this.memory.corpus.update(writer, id, change));
  }

  async deleteMemory(writer: MemoryWriter, id: string) {
    return this.ofAgent(() => this.memory.corpus.delete(writer, id));
  }

  async archiveMemory(writer: MemoryWriter, id: string) {
    return this.ofAgent(() => this.memory.corpus.archive(writer, id));
  }

  async whyMemory(reader: MemoryReader, id: string) {
    return this.ofAgent(() => this.memory.corpus.why(reader, id));
  }

  async offerMemories(reader: MemoryReader, offer: { operationId: string; query: string; limit?: number }) {
    return this.ofAgent(() => this.memory.extractions.offer(reader, offer));
  }

  async memoryStatus() {
    return this.ofAgent(() => this.memory.status());
  }
}

/** Throws `INVALID_INPUT` unless the conversation itself is the sender. */
function checkConversation({ envelope: { from } }: Delivery, conversationId: string): void {
  if (from.kind === "conversation" && from.id === conversationId) return;
  throw invalid("Only the conversation itself can send this envelope.");
}
