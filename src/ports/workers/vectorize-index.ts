/**
 * The `VectorIndex` of a Worker: an index of Vectorize, with cosine or dot product as its metric. Vectorize filters only by members that
 * have a metadata index.
 */
import { defined } from "../../shared/defined.ts";
import { invalid, unavailable } from "../../shared/errors.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { shorten } from "../../shared/text.ts";
import { fitsUtf8 } from "../../shared/utf8.ts";
import {
  checkCount,
  checkMatches,
  MAX_DELETED,
  MAX_SHORT_ID_BYTES,
  MAX_UPSERTED,
  type MetadataValue,
  type StoredVector,
  type VectorIndex,
  type VectorMatch,
  type VectorQuery,
} from "../vector-index.ts";

/** The member of metadata that holds an id that does not fit the index's own. */
const ID = "_id";
/** Bytes of a name of a namespace in Vectorize. */
const MAX_NAMESPACE_BYTES = 64;
/** Length of a message of the platform. */
const MAX_MESSAGE = 300;

export class VectorizeVectorIndex implements VectorIndex {
  constructor(private readonly index: Pick<Vectorize, "query" | "upsert" | "deleteByIds">) {}

  async query(vector: readonly number[], query: VectorQuery): Promise<VectorMatch[]> {
    const { topK, filter, idsOnly = false } = query;
    checkMatches(query);
    const space = await spaceOf(query.namespace);
    const returnMetadata = idsOnly ? ("none" as const) : ("all" as const);
    const options = { namespace: space.name, topK, returnMetadata, ...defined({ filter }) };
    const { matches } = await answered(() => this.index.query([...vector], options));
    return matches.flatMap(({ id, score, metadata = {} }) => {
      const short = id.startsWith(space.prefix) ? id.slice(space.prefix.length) : undefined;
      if (idsOnly) return short === undefined ? [] : [{ id: short, score }];
      // SAFETY: `upsert` or the deployer wrote the metadata, with values of the same types.
      const { [ID]: own, ...others } = metadata as Record<string, MetadataValue>;
      const hasOthers = Object.keys(others).length > 0;
      const known = short ?? (typeof own === "string" ? own : id);
      return [{ id: known, score, ...(hasOthers && { metadata: others }) }];
    });
  }

  async upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void> {
    checkCount("vectors", vectors.length, MAX_UPSERTED);
    const space = await spaceOf(namespace);
    const stored = await Promise.all(
      vectors.map(async ({ id, values, metadata }) => ({
        id: await ownId(space, id),
        namespace: space.name,
        values: [...values],
        metadata: { ...metadata, ...(!isShort(id) && { [ID]: id }) },
      })),
    );
    await answered(() => this.index.upsert(stored));
  }

  async delete(namespace: string, ids: readonly string[]): Promise<void> {
    checkCount("ids", ids.length, MAX_DELETED);
    const space = await spaceOf(namespace);
    const own = await Promise.all(ids.map((id) => ownId(space, id)));
    await answered(() => this.index.deleteByIds(own));
  }
}

/** A namespace, its name in Vectorize, and the beginning of the short ids in it. */
interface Space {
  namespace: string;
  name: string;
  prefix: string;
}

/** Returns the names of a namespace. The hash of a long namespace replaces its name. */
async function spaceOf(namespace: string): Promise<Space> {
  const hash = await sha256Hex(namespace);
  const name = fitsUtf8(namespace, MAX_NAMESPACE_BYTES) ? namespace : hash;
  return { namespace, name, prefix: `${hash.slice(0, 32)}:` };
}

/** Returns the id of Vectorize, which is unique over all namespaces and has at most 64 bytes: the short id itself, or a hash. */
async function ownId({ namespace, prefix }: Space, id: string): Promise<string> {
  return isShort(id) ? `${prefix}${id}` : sha256Hex(`${namespace}\n${id}`);
}

function isShort(id: string): boolean {
  return fitsUtf8(id, MAX_SHORT_ID_BYTES);
}

/** Returns the platform's answer. Its codes from 40 000 on are errors of the request. */
async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (cause) {
    const message = shorten(cause instanceof Error ? cause.message : String(cause), MAX_MESSAGE);
    if (/\bcode = 40\d{3}\b/.test(message))
      throw invalid(`The index refuses the request: ${message}`, { cause });
    throw unavailable(`The index failed: ${message}`, { retriable: true, cause });
  }
}
