/**
 * A Durable Object's storage that counts operations and rows (see `counting.ts`). Pass it to the adapters instead of
 * `ctx.storage`. Calls of the SDK to `ctx.storage` are not counted.
 */

import type { ActorStorage } from "../../src/ports/workers/durable-storage.ts";
import type { CostCounter } from "./counting.ts";

export function countingStorage(storage: ActorStorage, counter: CostCounter): ActorStorage {
  return {
    sql: {
      exec: (statement, ...bindings) => {
        // SAFETY: the cursor is passed on unchanged; the caller chooses the type of its rows.
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
