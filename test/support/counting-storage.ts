/**
 * A Durable Object's storage that counts statements, keys and rows (see `counting.ts`), to be used in place of
 * `ctx.storage`. The SDK's own use of `ctx.storage` is not counted.
 */

import type { ActorStorage } from "../../src/ports/workers/durable-storage.ts";
import type { CostCounter } from "./counting.ts";

export function countingStorage(storage: ActorStorage, counter: CostCounter): ActorStorage {
  return {
    sql: {
      exec: (statement, ...bindings) => {
        // SAFETY: the cursor is passed on as it is; the type of its rows is the caller's.
        const cursor = storage.sql.exec(statement, ...bindings) as SqlStorageCursor<never>;
        counter.countStatement(cursor);
        return cursor;
      },
    },
    kv: {
      get: (key: string) => {
        counter.countKeyRead();
        return storage.kv.get(key);
      },
      put: (key, value) => {
        counter.countKeyWrite();
        storage.kv.put(key, value);
      },
      delete: (key) => {
        counter.countKeyWrite();
        return storage.kv.delete(key);
      },
      list: (options) => {
        counter.countKeyRead();
        return storage.kv.list(options);
      },
    },
    transactionSync: (body) => storage.transactionSync(body),
  };
}
