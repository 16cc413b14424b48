/**
 * Vectors with metadata, found by how near they are to another one.
 *
 * VECTOR-1  A query returns the nearest vectors first, at most `topK`. Higher scores are nearer.
 * VECTOR-2  An upsert replaces vectors of the same id as a whole, metadata included. A query may see it some seconds later only.
 * VECTOR-3  Namespaces share nothing: equal ids of two namespaces are two vectors, and a query finds those of its own.
 * VECTOR-4  A filter keeps the vectors whose metadata has all of its members, with equal values.
 * VECTOR-5  A vector of another length than the index has is refused with `INVALID_INPUT`.
 */
export interface VectorIndex {
  query(vector: readonly number[], options: VectorQuery): Promise<VectorMatch[]>;
  upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void>;
}

/** A value of metadata. */
export type MetadataValue = string | number | boolean | string[];

export interface VectorQuery {
  namespace: string;
  topK: number;
  filter?: Readonly<Record<string, string | number | boolean>>;
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
