/** The storage of turns in a Durable Object. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe } from "vitest";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import { turnStoreContract } from "../support/turn-store-contract.ts";

describe("turns on workerd", () => {
  turnStoreContract(
    (body) =>
      runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) =>
        body({ db: new DurableSqlDatabase(storage), kv: new DurableKeyValue(storage) }),
      ),
    8,
  );
});
