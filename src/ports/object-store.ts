/**
 * Large objects that are read as a whole, by key. Keys have at most 1 024 bytes of UTF-8.
 *
 * OBJECT-1  A read returns the whole object that was put last. Later changes to the caller's bytes do not affect it.
 * OBJECT-2  A missing object is `null`, and deleting it is no error.
 */
export interface ObjectStore {
  put(key: string, bytes: Uint8Array, facts: ObjectFacts): Promise<void>;
  head(key: string): Promise<ObjectHead | null>;
  get(key: string): Promise<(ObjectHead & { bytes: Uint8Array }) | null>;
  delete(key: string): Promise<void>;
}

/** Named texts that describe an object, together at most 2 KB. */
export type ObjectFacts = Readonly<Record<string, string>>;

export interface ObjectHead {
  size: number;
  facts: ObjectFacts;
}
