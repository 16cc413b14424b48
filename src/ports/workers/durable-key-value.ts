/** The `KeyValue` of a Durable Object: its synchronous key-value storage, which shares the SQLite transactions. */
import type { KeyValue } from "../key-value.ts";
import { checkKey } from "../sql-values.ts";
import type { ActorStorage } from "./actor-storage.ts";

export class DurableKeyValue implements KeyValue {
  constructor(private readonly storage: Pick<ActorStorage, "kv">) {}

  get<Value>(key: string): Value | undefined {
    return this.storage.kv.get<Value>(key);
  }

  put<Value>(key: string, value: Value): void {
    checkKey(key);
    this.storage.kv.put(key, value);
  }

  delete(key: string): boolean {
    return this.storage.kv.delete(key);
  }

  list<Value>(prefix: string, limit: number): [key: string, value: Value][] {
    return [...this.storage.kv.list<Value>({ prefix, limit })];
  }
}
