/** A binding of Vectorize with its documented rules: limits, short ids that are unique over all namespaces, errors with codes, and late changes. */
import type { VectorLag } from "./memory-vector-index.ts";

export class VectorizeDouble implements Pick<Vectorize, "query" | "upsert" | "deleteByIds"> {
  readonly #vectors = new Map<string, VectorizeVector>();
  readonly #waiting: { from: number; apply: () => void }[] = [];
  queries = 0;
  /** Thrown instead of an answer. */
  failure: Error | null = null;

  constructor(
    private readonly dimensions: number,
    private readonly lag: VectorLag,
  ) {}

  /** Returns the vectors that queries see. */
  seen(): VectorizeVector[] {
    const now = this.lag.clock.now();
    while (this.#waiting[0] !== undefined && this.#waiting[0].from <= now) this.#waiting.shift()?.apply();
    return [...this.#vectors.values()];
  }

  async upsert(vectors: VectorizeVector[]): Promise<VectorizeAsyncMutation> {
    check(vectors.length <= 1_000, "VECTOR_UPSERT_ERROR (code = 40007): too many vectors in payload");
    for (const { id, namespace = "", values } of vectors) {
      this.#checkLength("UPSERT", values);
      check(bytes(id) <= 64, "VECTOR_UPSERT_ERROR (code = 40008): invalid vector id, max is 64 bytes");
      check(bytes(namespace) <= 64, "VECTOR_UPSERT_ERROR (code = 40009): namespace too long");
    }
    const copies = structuredClone(vectors);
    return this.#change(() => {
      for (const vector of copies) this.#vectors.set(vector.id, vector);
    });
  }

  async deleteByIds(ids: string[]): Promise<VectorizeAsyncMutation> {
    check(ids.length <= 100, "VECTOR_DELETE_ERROR (code = 40007): too many ids in payload");
    return this.#change(() => {
      for (const id of ids) this.#vectors.delete(id);
    });
  }

  async query(
    near: number[] | VectorFloatArray,
    { namespace = "", topK = 5, filter = {}, returnMetadata }: VectorizeQueryOptions = {},
  ): Promise<VectorizeMatches> {
    this.queries += 1;
    if (this.failure !== null) throw this.failure;
    this.#checkLength("QUERY", near);
    const hasMetadata = returnMetadata === "all";
    check(topK <= (hasMetadata ? 20 : 100), "VECTOR_QUERY_ERROR (code = 40012): top_k is too large");
    const wanted = Object.entries(filter);
    const matches = this.seen()
      .filter((vector) => vector.namespace === namespace)
      .filter(({ metadata = {} }) => wanted.every(([name, value]) => metadata[name] === value))
      .map(({ id, values, metadata }) => ({
        id,
        score: cosine(near, values),
        ...(hasMetadata && metadata && { metadata }),
      }))
      .sort((one, other) => other.score - one.score)
      .slice(0, topK);
    return { matches, count: matches.length };
  }

  #change(apply: () => void): VectorizeAsyncMutation {
    if (this.failure !== null) throw this.failure;
    this.#waiting.push({ from: this.lag.clock.now() + this.lag.milliseconds, apply });
    return { mutationId: crypto.randomUUID() };
  }

  #checkLength(what: string, { length }: number[] | VectorFloatArray): void {
    const message = `VECTOR_${what}_ERROR (code = 40006): invalid vector, expected ${this.dimensions} dimensions`;
    check(length === this.dimensions, message);
  }
}

function check(isRight: boolean, message: string): void {
  if (!isRight) throw new Error(message);
}

function cosine(one: ArrayLike<number>, other: ArrayLike<number>): number {
  let [product, ofOne, ofOther] = [0, 0, 0];
  for (let index = 0; index < one.length; index++) {
    const [a, b] = [one[index] ?? 0, other[index] ?? 0];
    product += a * b;
    ofOne += a * a;
    ofOther += b * b;
  }
  return product / Math.sqrt(ofOne * ofOther);
}

function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
