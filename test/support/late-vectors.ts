/** A store of vectors with requests that can fail, or go unanswered and take effect later. */
import type { Clock } from "../../src/ports/clock.ts";
import type { StoredVector, VectorIndex, VectorQuery } from "../../src/ports/vector-index.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { MemoryVectorIndex } from "./memory-vector-index.ts";

export class LateVectors implements VectorIndex {
  readonly inner: MemoryVectorIndex;
  /** Its state: it is well, it fails, it takes effect and answers `lateMs` after a request, or it takes effect then without an answer. */
  mood: "well" | "down" | "slow" | "late" = "well";
  lateMs = 85_000;
  queries = 0;
  /** The ids of each upsert and of each deletion. */
  readonly upserts: string[][] = [];
  readonly deletions: string[][] = [];
  #late: (() => void)[] = [];
  /** The life of the actor that gets answers. */
  #life = {};

  constructor(
    dimensions: number,
    private readonly clock: Pick<Clock, "timer">,
  ) {
    this.inner = new MemoryVectorIndex(dimensions);
  }

  /** Returns the ids that are there. */
  ids(): string[] {
    return [...this.inner.ids().values()].flat();
  }

  /** Lets the requests take effect that were not answered. */
  comeLate(): void {
    for (const come of this.#late.splice(0)) come();
  }

  /** Gives no answer to the requests of a life that ends now. */
  stopped(): void {
    this.#life = {};
  }

  query(vector: readonly number[], options: VectorQuery) {
    this.queries += 1;
    return this.#answer(() => this.inner.query(vector, options));
  }

  upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void> {
    this.upserts.push(vectors.map(({ id }) => id));
    return this.#answer(() => this.inner.upsert(namespace, vectors));
  }

  delete(namespace: string, ids: readonly string[]): Promise<void> {
    this.deletions.push([...ids]);
    return this.#answer(() => this.inner.delete(namespace, ids));
  }

  #answer<Value>(effect: () => Promise<Value>): Promise<Value> {
    if (this.mood === "well") return effect();
    if (this.mood === "down")
      return Promise.reject(new DramatisError("UNAVAILABLE", "The index is down.", { retriable: true }));
    if (this.mood === "slow") {
      const life = this.#life;
      return new Promise((resolve) => {
        this.clock.timer(this.lateMs, () => {
          const answer = effect();
          if (life === this.#life) resolve(answer);
        });
      });
    }
    const come = () => void effect();
    this.#late.push(come);
    this.clock.timer(this.lateMs, come);
    return new Promise(() => undefined);
  }
}
