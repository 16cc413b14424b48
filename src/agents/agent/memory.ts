/**
 * The memory of an agent in its actor: the corpus, its copies, its upkeep, and their wake-ups.
 *
 * MEMSTATE-1  Before the first memory, the state names the embedder that searches will use.
 */
import { Copies, type MemoryRecords } from "../../memory/corpus/copies.ts";
import { Corpus } from "../../memory/corpus/corpus.ts";
import { indexEntry } from "../../memory/corpus/corpus-rows.ts";
import { eraseMore } from "../../memory/corpus/erasures.ts";
import { Extractions } from "../../memory/corpus/extraction.ts";
import { type PublishedVectors, vectorNamespace } from "../../memory/corpus/index/owned-vectors.ts";
import type { IndexPool } from "../../memory/corpus/index/pool.ts";
import { SearchIndex } from "../../memory/corpus/index/search-index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { VectorIndex } from "../../ports/vector-index.ts";
import type { MemoryStatus } from "../../protocol/memory-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { placeOf } from "../../shared/error-place.ts";
import { unavailable } from "../../shared/errors.ts";
import { toIso } from "../../shared/time.ts";
import { Copy } from "../base/copies/copy.ts";
import type { Wakeup } from "../base/timers/wakeups.ts";
import type { MemoryEmbedders } from "./memory-embedder.ts";
import { MemoryUpkeep, type UpkeepPorts } from "./upkeep.ts";

/** The stores of an application with copies of memories, or `null`. */
export interface MemoryStores {
  objects(): ObjectStore | null;
  records(): MemoryRecords | null;
}

export interface MemorySearch extends Pick<MemoryEmbedders, "embedder"> {
  pool: IndexPool;
  formerEmbedder?: MemoryEmbedders["formerEmbedder"];
  /** The vector store, or `null` if the deployment has no vector store. */
  vectors(): VectorIndex | null;
}

export interface AgentMemoryPorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  clock: Clock;
  ids: Ids;
  search: MemorySearch;
  stores: MemoryStores;
  wakeup: Wakeup;
  upkeep: Omit<UpkeepPorts, "corpus" | "clock">;
  /** Throws `NOT_FOUND` if the agent was never created. */
  agent(): { id: string; tenant: string };
}

export class AgentMemory {
  readonly corpus: Corpus;
  readonly extractions: Extractions;
  readonly upkeep: MemoryUpkeep;
  readonly #index: SearchIndex;
  readonly #copies: Copies;
  readonly #copy: Copy;
  readonly #search: MemorySearch;
  readonly #clock: Clock;

  constructor(ports: AgentMemoryPorts) {
    this.#search = ports.search;
    this.#clock = ports.clock;
    const { clock, stores } = ports;
    this.#index = new SearchIndex({
      ...ports,
      ...ports.search,
      entriesAfter: (n, limit) =>
        this.corpus.rows.memories
          .after(n, limit)
          .map((memory) => indexEntry(memory, this.corpus.rows.memories.text(memory.n)?.text)),
      vectors: {
        index: ports.search.vectors,
        namespace: () => vectorNamespace(ports.agent()),
      },
      awaken: () => this.#awaken(),
    });
    this.corpus = new Corpus({
      ...ports,
      index: this.#index,
      objects: stores.objects,
      noted: async () => void (await Promise.all([this.#copy.note(), this.upkeep.noted()])),
      committed: () => void this.#copy.publish(),
    });
    this.extractions = new Extractions(this.corpus);
    this.upkeep = new MemoryUpkeep({ ...ports.upkeep, clock, corpus: this.corpus });
    this.#copies = new Copies(this.corpus, stores.records, () => this.#pump());
    this.#copy = new Copy({
      clock,
      wakeup: ports.wakeup,
      directory: () => true,
      put: () => this.#put(),
      mayBeBehind: () =>
        this.#copies.isBehind() ||
        (this.corpus.exists && (this.corpus.rows.memories.hasCondemned() || this.#index.isBehind)),
      changedAt: () => this.#copies.failure().since ?? clock.now(),
    });
  }

  /** Starts pending work. Returns the milliseconds until the next call, or `null` if the copies are up to date. */
  wake(): number | null {
    return this.#copy.wake();
  }

  /** Starts to bring the copies up to date. */
  publish(): void {
    void this.#copy.publish();
  }

  async status(): Promise<MemoryStatus> {
    const index = this.corpus.exists ? this.#index.status() : undefined;
    const embedder = index?.embedder === undefined ? await this.#configured() : index.embedder;
    const { memories, archived, pending } = this.corpus.status();
    const { vectors } = index ?? {};
    const copies = this.#copies.failure();
    const error = copies.error ?? vectors?.error?.message;
    const since = copies.error === undefined ? vectors?.error?.since : copies.since;
    return {
      memories,
      archived,
      pending: {
        records: pending,
        embeddings: index?.pending.memories ?? 0,
        ...defined({ vectors: vectors?.pending }),
        ...defined({ error, since: since === undefined ? undefined : toIso(since) }),
      },
      embedder,
    };
  }

  /** Keeps the numbers of the vectors in the vector store, for a deletion of the agent. Returns their spaces. */
  retainVectors(): PublishedVectors | undefined {
    return this.corpus.exists ? this.#index.retainForRemoval() : undefined;
  }

  /** Brings the copies up to date. Returns the milliseconds until the next step, if any. Rejects with an error for the log. */
  async #put(): Promise<number | undefined> {
    try {
      // Other requests run between two commits.
      while (await eraseMore(this.corpus)) await this.#clock.sleep(0);
      await this.#copies.bringUpToDate();
      return this.corpus.exists ? this.#index.waitMs : undefined;
    } catch (error) {
      throw unavailable(placeOf(error), { retriable: true });
    }
  }

  /** Starts work that a deployment caused. */
  #awaken(): void {
    try {
      this.#copy.note().catch((error: unknown) => console.error(error));
      this.publish();
    } catch (error) {
      console.error(error);
    }
  }

  /** Returns the embedder of the first memories. `null` if there is no embedder, or if it is unavailable now. */
  async #configured(): Promise<MemoryStatus["embedder"]> {
    try {
      const embedder = await this.#search.embedder();
      return embedder && { id: embedder.id, dimensions: embedder.dimensions };
    } catch {
      return null;
    }
  }

  /** Embeds memories without vectors. Rejects if that fails. A later call continues. */
  async #pump(): Promise<number> {
    while ((await this.#index.pump()) > 0) {
      const { error } = this.#index;
      if (error !== undefined) throw unavailable(error.message, { retriable: true });
    }
    return 0;
  }
}
