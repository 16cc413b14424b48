/**
 * Vectors with metadata, found by how near they are to another one.
 *
 * VECTOR-1  A query returns the nearest vectors first, at most `topK`. Higher scores are nearer.
 * VECTOR-2  An upsert replaces vectors of the same id as a whole, metadata included. A query may see it some seconds later only.
 * VECTOR-3  Namespaces share nothing: equal ids of two namespaces are two vectors, and a query finds those of its own.
 * VECTOR-4  A filter keeps the vectors whose metadata has all of its members, with equal values.
 * VECTOR-5  A vector of another length than the index has is refused with `INVALID_INPUT`.
 * VECTOR-6  A query for ids only returns no metadata. It leaves out vectors with ids of more than `MAX_SHORT_ID_BYTES`.
 * VECTOR-7  A deletion removes vectors by their ids, in the order of changes. Ids that are not there change nothing.
 * VECTOR-8  More than the limits below allow is refused with `INVALID_INPUT`.
 */
import { DramatisError } from "../shared/errors.ts";

export interface VectorIndex {
  query(vector: readonly number[], options: VectorQuery): Promise<VectorMatch[]>;
  upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void>;
  delete(namespace: string, ids: readonly string[]): Promise<void>;
}

/** Matches of a query, and of one for ids only, at most. */
export const MAX_MATCHES = 20;
export const MAX_IDS_ONLY = 100;
/** Vectors of one upsert, and ids of one deletion, at most. */
export const [MAX_UPSERTED, MAX_DELETED] = [1_000, 100];
/** Bytes in UTF-8 of an id that a query for ids only returns, at most. */
export const MAX_SHORT_ID_BYTES = 31;

/** A value of metadata. */
export type MetadataValue = string | number | boolean | string[];

export interface VectorQuery {
  namespace: string;
  topK: number;
  filter?: Readonly<Record<string, string | number | boolean>>;
  /** Returns ids and scores alone, and more of them. */
  idsOnly?: boolean;
}

export interface StoredVector {
  id: string;
  values: readonly number[];
  metadata?: Readonly<Record<string, MetadataValue>>;
}

export interface VectorMatch {
  id: string;
  score: number;
  metadata?: Record<string, MetadataValue>;
}

/** Throws `INVALID_INPUT` for a query of more matches than an index returns. */
export function checkMatches({ topK, idsOnly = false }: VectorQuery): void {
  checkCount("matches", topK, idsOnly ? MAX_IDS_ONLY : MAX_MATCHES);
}

/** Throws `INVALID_INPUT` for more things than `most`. */
export function checkCount(things: string, count: number, most: number): void {
  if (count <= most) return;
  throw new DramatisError(
    "INVALID_INPUT",
    `The index takes ${most} ${things} at a time. These are ${count}.`,
  );
}
