/** The storage of turns on Node's SQLite. */
import { describe } from "vitest";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { turnStoreContract } from "../support/turn-store-contract.ts";

describe("turns on node:sqlite", () => {
  turnStoreContract(async (body) => {
    const db = new NodeSqlDatabase();
    try {
      await body({ db, kv: new NodeKeyValue(db) });
    } finally {
      db.close();
    }
  }, 30);
});
