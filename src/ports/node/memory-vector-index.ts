/** The `VectorIndex` of Node, in memory. It compares all vectors, by the cosine of their angle. */
import { DramatisError } from "../../shared/errors.ts";
import type { StoredVector, VectorIndex, VectorMatch, VectorQuery } from "../vector-index.ts";

export class MemoryVectorIndex implements VectorIndex {
  readonly #spaces = new Map<string, Map<string, StoredVector>>();

  constructor(private readonly dimensions: number) {}

  async query(
    vector: readonly number[],
    { namespace, topK, filter = {} }: VectorQuery,
  ): Promise<VectorMatch[]> {
    this.#check(vector);
    const wanted = Object.entries(filter);
    const stored = [...(this.#spaces.get(namespace)?.values() ?? [])];
    return stored
      .filter(({ metadata = {} }) => wanted.every(([name, value]) => metadata[name] === value))
      .map(({ id, values, metadata }) => ({
        id,
        score: cosine(vector, values),
        ...(metadata && { metadata: structuredClone({ ...metadata }) }),
      }))
      .sort((one, other) => other.score - one.score)
      .slice(0, topK);
  }

  async upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void> {
    for (const { values } of vectors) this.#check(values);
    const space = this.#spaces.get(namespace) ?? new Map<string, StoredVector>();
    this.#spaces.set(namespace, space);
    for (const vector of vectors) space.set(vector.id, structuredClone(vector));
  }

  #check({ length }: readonly number[]): void {
    if (length === this.dimensions) return;
    throw new DramatisError(
      "INVALID_INPUT",
      `The index has vectors of ${this.dimensions} numbers. This one has ${length}.`,
    );
  }
}

function cosine(one: readonly number[], other: readonly number[]): number {
  const product = one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
  const lengths = Math.hypot(...one) * Math.hypot(...other);
  return lengths === 0 ? 0 : product / lengths;
}
