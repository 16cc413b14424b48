/**
 * The vectors of artifacts, in the store of vectors that memories use.
 *
 * ARTVEC-1  Each project has its own namespace, also after a project of the same id. A vector belongs to one content at one path, and its
 *           id is never used again. So a late deletion spares a content that came back.
 * ARTVEC-2  If the store or the embedder fails, writes succeed, and searches use words. A later write or search makes missing vectors.
 * ARTVEC-3  A search of all artifacts deletes the vectors that it finds without a row.
 * ARTVEC-4  The requests of an operation have one time limit together. After a time-out, the operations of the tenant leave out vectors
 *           for `PAUSE_MS`.
 */
import type { D1Artifacts, ProjectPlace } from "../d1/artifacts.ts";
import type { RepositoryAddress } from "../d1/repositories.ts";
import { decodeText } from "../git/bytes.ts";
import type { GitRepository } from "../git/git-repository.ts";
import type { Embedder } from "../memory/embedders/embedder.ts";
import type { Clock } from "../ports/clock.ts";
import { unanswered, withDeadline } from "../ports/deadline.ts";
import { MAX_DELETED, MAX_IDS_ONLY, type StoredVector, type VectorIndex } from "../ports/vector-index.ts";
import { sha256Hex } from "../shared/sha256.ts";
import type { ArtifactTypes } from "./types.ts";

export interface VectorPorts {
  store: VectorIndex;
  embedder(tenant: string): Promise<Embedder | null>;
  index: D1Artifacts;
  types: ArtifactTypes;
  /** The ends of pauses by tenant (ARTVEC-4). All services of an isolate share them. */
  pauses: Map<string, number>;
  clock: Pick<Clock, "now" | "timer">;
}

/** Timeout of the embedder and the store together, for one operation, in milliseconds. */
export const VECTORS_MS = 10_000;
/** Pause after a time-out, in milliseconds. */
const PAUSE_MS = 60_000;
/** Artifacts that get vectors after one write, or before one search. */
const EMBEDDED = 20;

/** The artifacts of a project, and the time of their repository's creation. */
export type VectorPlace = ProjectPlace & Required<Pick<RepositoryAddress, "since">>;

/** The vectors of one operation, which leaves them out from `until`. */
export type VectorWork = VectorPlace & { until: number };

export class ArtifactVectors {
  constructor(private readonly ports: VectorPorts) {}

  /** Returns the nearest vectors of a query with their cosines. The map is empty if the store or the embedder fails (ARTVEC-2). */
  async nearest(place: VectorWork, query: string): Promise<ReadonlyMap<string, number>> {
    const found = await this.#inTime(place, async (signal) => {
      const embedder = await this.ports.embedder(place.tenant);
      const vector = await embedder?.embedQuery(query, {}, signal);
      if (vector === undefined || vector === null) return [];
      const options = { namespace: await namespaceOf(place), topK: MAX_IDS_ONLY, idsOnly: true };
      return this.ports.store.query([...vector], options);
    });
    return new Map(found?.map(({ id, score }) => [id, score]));
  }

  /** Makes the vectors of rows without vectors (ARTIFACT-3). */
  async complete(place: VectorWork, git: GitRepository): Promise<void> {
    const { index, store, types, embedder: embedderOf } = this.ports;
    await this.#inTime(place, async (signal) => {
      const pending = await index.pending(place, EMBEDDED);
      const embedder = pending.length === 0 ? null : await embedderOf(place.tenant);
      if (embedder === null) return;
      const texts: string[] = [];
      for (const { path, oid } of pending)
        texts.push(types.embedText(path, decodeText(await git.blob(oid)) ?? ""));
      const made = await embedder.embed(texts, signal);
      const vectors = pending.flatMap(({ vector: id }, at): StoredVector[] => {
        const values = made[at] ?? null;
        return values === null ? [] : [{ id, values: [...values] }];
      });
      if (vectors.length > 0) await store.upsert(await namespaceOf(place), vectors);
      await index.embedded(
        place,
        pending.map(({ vector }) => vector),
      );
    });
  }

  /** Deletes vectors. A failure leaves them (ARTVEC-2). */
  async remove(place: VectorWork, ids: readonly string[]): Promise<void> {
    await this.#inTime(place, async () => this.ports.store.delete(await namespaceOf(place), ids));
  }

  /** Deletes vectors. Rejects if the store fails. */
  async delete(place: VectorPlace, ids: readonly string[]): Promise<void> {
    const namespace = await namespaceOf(place);
    for (let at = 0; at < ids.length; at += MAX_DELETED) {
      const remove = () => this.ports.store.delete(namespace, ids.slice(at, at + MAX_DELETED));
      await withDeadline(this.ports.clock, VECTORS_MS, remove, { reason: SILENT });
    }
  }

  async #inTime<Value>(
    { tenant, until }: VectorWork,
    work: (signal: AbortSignal) => Promise<Value>,
  ): Promise<Value | undefined> {
    const { clock, pauses } = this.ports;
    const left = until - clock.now();
    if (left <= 0 || clock.now() < (pauses.get(tenant) ?? 0)) return undefined;
    const reason = () => {
      pauses.set(tenant, clock.now() + PAUSE_MS);
      return SILENT();
    };
    try {
      return await withDeadline(clock, left, work, { reason });
    } catch (error) {
      console.warn("The vectors of artifacts are not available:", error);
      return undefined;
    }
  }
}

const SILENT = unanswered("The store of vectors", VECTORS_MS);

function namespaceOf({ tenant, project, since }: VectorPlace): Promise<string> {
  return sha256Hex(JSON.stringify(["artifacts", tenant, project, since]));
}
