/**
 * Large objects that are read as a whole or in parts, by key. Keys have at most 1,024 bytes of UTF-8.
 *
 * OBJECT-1  A read returns the object of the last put as a whole. Later changes to the caller's bytes do not affect it.
 * OBJECT-2  A missing object is `null`, and deleting it is no error.
 * OBJECT-3  A read of a range returns that part, up to the end of the object. `size` and `version` describe the whole object. Every put
 *           changes `version`.
 * OBJECT-4  A list has the keys of all objects under a prefix, ascending. It reflects puts and deletions at once.
 */
export interface ObjectStore {
  put(key: string, bytes: Uint8Array, facts: ObjectFacts): Promise<void>;
  head(key: string): Promise<ObjectHead | null>;
  get(key: string, range?: ByteRange): Promise<(ObjectHead & { bytes: Uint8Array }) | null>;
  delete(key: string): Promise<void>;
  /** Returns at most `limit` keys that begin with `prefix`, ascending. With `after`, it returns only keys after this key. `limit` is at most 1 000. */
  list(prefix: string, limit: number, after?: string): Promise<string[]>;
}

/** Named texts that describe an object, together at most 2 KB. */
export type ObjectFacts = Readonly<Record<string, string>>;

/** A part of an object, in bytes. It begins within the object. */
export interface ByteRange {
  offset: number;
  length: number;
}

export interface ObjectHead {
  size: number;
  /** Identifies what one put stored. */
  version: string;
  facts: ObjectFacts;
}
