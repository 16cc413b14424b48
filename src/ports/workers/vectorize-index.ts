/**
 * The `VectorIndex` of a Worker: an index of Vectorize, with cosine or dot product as its metric. Vectorize filters only by members
 * for which the index has a metadata index.
 */
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { shorten } from "../../shared/text.ts";
import type { MetadataValue, StoredVector, VectorIndex, VectorMatch, VectorQuery } from "../vector-index.ts";

/** The member of metadata that holds the id. An id of Vectorize is unique over all namespaces, and short. */
const ID = "_id";
/** Length of a message of the platform. */
const MAX_MESSAGE = 300;

export class VectorizeVectorIndex implements VectorIndex {
  constructor(private readonly index: Pick<Vectorize, "query" | "upsert">) {}

  async query(vector: readonly number[], { namespace, topK, filter }: VectorQuery): Promise<VectorMatch[]> {
    const options = { namespace, topK, returnMetadata: "all" as const, ...defined({ filter }) };
    const { matches } = await answered(() => this.index.query([...vector], options));
    return matches.map(({ id, score, metadata = {} }) => {
      // SAFETY: the metadata are those of `upsert`, or of the deployer, with values of the same types.
      const { [ID]: own, ...others } = metadata as Record<string, MetadataValue>;
      const hasOthers = Object.keys(others).length > 0;
      return { id: typeof own === "string" ? own : id, score, ...(hasOthers && { metadata: others }) };
    });
  }

  async upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void> {
    const stored = await Promise.all(
      vectors.map(async ({ id, values, metadata }) => ({
        id: await sha256Hex(`${namespace}\n${id}`),
        namespace,
        values: [...values],
        metadata: { ...metadata, [ID]: id },
      })),
    );
    await answered(() => this.index.upsert(stored));
  }
}

/** Returns the platform's answer. Its codes from 40 000 on are errors of the request. */
async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (cause) {
    const message = shorten(cause instanceof Error ? cause.message : String(cause), MAX_MESSAGE);
    if (/\bcode = 40\d{3}\b/.test(message))
      throw new DramatisError("INVALID_INPUT", `The index refuses the request: ${message}`, { cause });
    throw new DramatisError("UNAVAILABLE", `The index failed: ${message}`, { retriable: true, cause });
  }
}
