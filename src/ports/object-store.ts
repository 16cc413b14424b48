/**
 * Large things that are read as a whole, by key. Keys are at most 1 024 bytes of UTF-8.
 *
 * OBJECT-1  What is read is what was put last, whole; nothing that is done to it afterwards changes it.
 * OBJECT-2  What does not exist is `null`, and deleting it is no error.
 */
export interface ObjectStore {
  put(key: string, bytes: Uint8Array, facts: ObjectFacts): Promise<void>;
  /** `null` for what does not exist. */
  head(key: string): Promise<ObjectHead | null>;
  get(key: string): Promise<(ObjectHead & { bytes: Uint8Array }) | null>;
  /** Deleting what does not exist is no error. */
  delete(key: string): Promise<void>;
}

/** What is known of an object beside its bytes: named texts, together at most 2 KB. */
export type ObjectFacts = Readonly<Record<string, string>>;

export interface ObjectHead {
  size: number;
  facts: ObjectFacts;
}
