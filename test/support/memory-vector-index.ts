/** The `VectorIndex` of Node, in memory. It compares all vectors, by the cosine of their angle. */
import type { Clock } from "../../src/ports/clock.ts";
import {
  checkCount,
  checkMatches,
  MAX_DELETED,
  MAX_SHORT_ID_BYTES,
  MAX_UPSERTED,
  type StoredVector,
  type VectorIndex,
  type VectorMatch,
  type VectorQuery,
} from "../../src/ports/vector-index.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { utf8Length } from "../../src/shared/utf8.ts";

/** Queries see changes `milliseconds` after they were acknowledged. */
export interface VectorLag {
  clock: Pick<Clock, "now">;
  milliseconds: number;
}

export class MemoryVectorIndex implements VectorIndex {
  readonly #spaces = new Map<string, Map<string, StoredVector>>();
  /** Changes that queries do not see yet, in their order. */
  readonly #waiting: { from: number; apply: () => void }[] = [];

  constructor(
    private readonly dimensions: number,
    private readonly lag?: VectorLag,
  ) {}

  async query(vector: readonly number[], options: VectorQuery): Promise<VectorMatch[]> {
    const { namespace, topK, filter = {}, idsOnly = false } = options;
    checkMatches(options);
    this.#check(vector);
    this.#applyDue();
    const wanted = Object.entries(filter);
    const stored = [...(this.#spaces.get(namespace)?.values() ?? [])];
    return stored
      .filter(({ metadata = {} }) => wanted.every(([name, value]) => metadata[name] === value))
      .map(({ id, values, metadata }) => ({
        id,
        score: cosine(vector, values),
        ...(metadata && !idsOnly && { metadata: structuredClone({ ...metadata }) }),
      }))
      .sort((one, other) => other.score - one.score)
      .slice(0, topK)
      .filter(({ id }) => !idsOnly || utf8Length(id) <= MAX_SHORT_ID_BYTES);
  }

  async upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void> {
    checkCount("vectors", vectors.length, MAX_UPSERTED);
    for (const { values } of vectors) this.#check(values);
    const copies = structuredClone([...vectors]);
    this.#change(() => {
      const space = this.#spaces.get(namespace) ?? new Map<string, StoredVector>();
      this.#spaces.set(namespace, space);
      for (const vector of copies) space.set(vector.id, vector);
    });
  }

  async delete(namespace: string, ids: readonly string[]): Promise<void> {
    checkCount("ids", ids.length, MAX_DELETED);
    const copies = [...ids];
    this.#change(() => {
      for (const id of copies) this.#spaces.get(namespace)?.delete(id);
    });
  }

  /** Returns the ids of all vectors that queries see, by namespace. */
  ids(): Map<string, string[]> {
    this.#applyDue();
    const all = [...this.#spaces].map(([name, space]): [string, string[]] => [name, [...space.keys()]]);
    return new Map(all.filter(([, ids]) => ids.length > 0));
  }

  #change(apply: () => void): void {
    const { clock, milliseconds } = this.lag ?? { clock: null, milliseconds: 0 };
    if (clock === null) apply();
    else this.#waiting.push({ from: clock.now() + milliseconds, apply });
  }

  #applyDue(): void {
    const now = this.lag?.clock.now() ?? 0;
    for (let next = this.#waiting[0]; next !== undefined && next.from <= now; next = this.#waiting[0]) {
      this.#waiting.shift();
      next.apply();
    }
  }

  #check({ length }: readonly number[]): void {
    if (length === this.dimensions) return;
    throw new DramatisError(
      "INVALID_INPUT",
      `The index has vectors with ${this.dimensions} dimensions. This vector has ${length}.`,
    );
  }
}

function cosine(one: readonly number[], other: readonly number[]): number {
  const product = one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
  const lengths = Math.hypot(...one) * Math.hypot(...other);
  return lengths === 0 ? 0 : product / lengths;
}
