/**
 * Small named values of an actor, in the same database and the same transactions as its `SqlDatabase`. Keys have 1 to 2 048
 * bytes. Values are structured-cloneable, have at most 2 000 000 bytes, and are stored as copies.
 */
export interface KeyValue {
  get<Value>(key: string): Value | undefined;
  put<Value>(key: string, value: Value): void;
  /** Returns whether the key was there. */
  delete(key: string): boolean;
  /** Returns at most `limit` entries with keys that start with `prefix`, after the key `after` if given. Ascending by the key's UTF-8 bytes. */
  list<Value>(prefix: string, limit: number, after?: string): [key: string, value: Value][];
}
