/**
 * Vectors with metadata, found by similarity.
 *
 * VECTOR-1  A query returns at most `topK` vectors, the nearest first. Higher scores are nearer.
 * VECTOR-2  An upsert replaces vectors with the same id as a whole, including metadata. A query may see the change some seconds later.
 * VECTOR-3  Namespaces are separate: equal ids in two namespaces are two vectors, and a query finds only vectors of its own namespace.
 * VECTOR-4  A filter keeps the vectors with metadata that contain all its members, with equal values.
 * VECTOR-5  A vector with other dimensions than the index is refused with `INVALID_INPUT`.
 * VECTOR-6  A query for ids only returns no metadata. It leaves out vectors with ids of more than `MAX_SHORT_ID_BYTES`.
 * VECTOR-7  A deletion removes vectors by their ids, in the order of changes. Missing ids are ignored.
 * VECTOR-8  Input beyond the limits below is refused with `INVALID_INPUT`.
 */
import { invalid } from "../shared/errors.ts";

export interface VectorIndex {
  query(vector: readonly number[], options: VectorQuery): Promise<VectorMatch[]>;
  upsert(namespace: string, vectors: readonly StoredVector[]): Promise<void>;
  delete(namespace: string, ids: readonly string[]): Promise<void>;
}

/** Most matches of a query, and of a query for ids only. */
export const MAX_MATCHES = 20;
export const MAX_IDS_ONLY = 100;
/** Most vectors of one upsert, and most ids of one deletion. */
export const [MAX_UPSERTED, MAX_DELETED] = [1_000, 100];
/** Longest id that a query for ids only returns, in bytes of UTF-8. */
export const MAX_SHORT_ID_BYTES = 31;

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
  throw invalid(`The index takes ${most} ${things} at a time. These are ${count}.`);
}
