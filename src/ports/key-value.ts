/**
 * Small named facts of an actor, in the same database and the same transactions as its `SqlDatabase`.
 * Keys are 1 to 2 048 bytes; values are structured-cloneable, at most 2 000 000 bytes, and kept as copies.
 */
export interface KeyValue {
  get<Value>(key: string): Value | undefined;
  put<Value>(key: string, value: Value): void;
  /** Returns whether the key was there. */
  delete(key: string): boolean;
  /** Entries whose key starts with `prefix`, ascending by the key's UTF-8 bytes, at most `limit`. */
  list<Value>(prefix: string, limit: number): [key: string, value: Value][];
}
