/** The ports on workerd: contracts of storage, turns and staged changes, row counts, and the job queue of the SDK in the same transactions. */
import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SqliteConversationStore } from "../../src/engine/sqlite-store.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import {
  DurableKeyValue,
  DurableSqlDatabase,
  durableStorage,
} from "../../src/ports/workers/durable-storage.ts";
import { R2ObjectStore } from "../../src/ports/workers/r2-object-store.ts";
import {
  conversationOf,
  conversationStoreContract,
  messageOf,
  turnOf,
} from "../support/conversation-store-contract.ts";
import { CostCounter } from "../support/counting.ts";
import { countingStorage } from "../support/counting-storage.ts";
import { objectStoreContract } from "../support/object-store-contract.ts";
import { portContract } from "../support/port-contract.ts";
import { stagingContract } from "../support/staging-contract.ts";
import { turnStoreContract } from "../support/turn-store-contract.ts";

/** Runs `body` inside a new Durable Object. */
async function inFreshObject<Value>(
  body: (state: DurableObjectState) => Value | Promise<Value>,
): Promise<Value> {
  return runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, state) => body(state));
}

describe("ports on workerd", () => {
  portContract((body) =>
    inFreshObject(({ storage }) =>
      body({ db: new DurableSqlDatabase(storage), kv: new DurableKeyValue(storage) }),
    ),
  );

  it("COST-1 COST-2 counts statements and rows exactly, however the rows are read", async () => {
    await inFreshObject(({ storage }) => {
      const counter = new CostCounter();
      const counted = countingStorage(storage, counter);
      const [db, kv] = [new DurableSqlDatabase(counted), new DurableKeyValue(counted)];
      const costOf = (work: () => unknown) => {
        counter.reset();
        work();
        return counter.cost;
      };
      const insert = "INSERT INTO notes SELECT value, 'x' FROM json_each(?)";
      expect(costOf(() => db.run("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)"))).toMatchObject({
        statements: 1,
        rowsWritten: 2,
      });
      expect(costOf(() => db.run(insert, JSON.stringify([1, 2, 3])))).toMatchObject({
        statements: 1,
        rowsWritten: 3,
      });
      const select = "SELECT * FROM notes ORDER BY id";
      expect(costOf(() => db.all(select))).toEqual({ statements: 1, rowsWritten: 0, rowsRead: 3 });
      expect(costOf(() => [...db.each(select)])).toEqual({ statements: 1, rowsWritten: 0, rowsRead: 3 });
      const partly = costOf(() => {
        const [first] = db.each(select);
        return first;
      });
      expect(partly).toEqual({ statements: 1, rowsWritten: 0, rowsRead: 2 });
      expect(costOf(() => kv.put("key", 1))).toEqual({ statements: 1, rowsWritten: 1, rowsRead: 0 });
      expect(costOf(() => [kv.get("key"), kv.list("", 5)])).toEqual({
        statements: 2,
        rowsWritten: 0,
        rowsRead: 0,
      });
      expect(costOf(() => kv.delete("key"))).toEqual({ statements: 1, rowsWritten: 1, rowsRead: 0 });
      expect(costOf(() => db.transaction(() => db.run(insert, "[9]")))).toMatchObject({
        statements: 1,
        rowsWritten: 1,
      });
    });
  });

  it("a job pushed inside a transaction commits and rolls back with it", async () => {
    const stub = await getAgentByName(exports.PlainSessionAgent, crypto.randomUUID());
    await runInDurableObject(stub, async (agent, { storage }) => {
      const db = new DurableSqlDatabase(storage);
      const time = Date.now() + 3_600_000;
      const pushes: Promise<unknown>[] = [];
      const push = (id: string) => pushes.push(agent.lifecycle.jobs.push({ id, fn: "wake", time }));
      expect(() =>
        db.transaction(() => {
          push("lost");
          throw new Error("on purpose");
        }),
      ).toThrow("on purpose");
      await Promise.allSettled(pushes);
      expect(agent.lifecycle.jobs.list()).toEqual([]);
      expect(await storage.getAlarm()).toBeNull();
      db.transaction(() => push("kept"));
      await Promise.all(pushes.slice(1));
      expect(agent.lifecycle.jobs.list()).toMatchObject([{ id: "kept", time }]);
      expect(await storage.getAlarm()).not.toBeNull();
      expect(await agent.lifecycle.jobs.cancel("kept")).toBe(true);
    });
  });
});

describe("the engine's conversations in a Durable Object", () => {
  conversationStoreContract((body) =>
    inFreshObject(({ storage }) => body(new SqliteConversationStore(new DurableSqlDatabase(storage)))),
  );

  it("C3 a message or a turn is two rows and one of the conversation, and a read touches only the returned rows", async () => {
    await inFreshObject(async ({ storage }) => {
      const counter = new CostCounter();
      const store = new SqliteConversationStore(new DurableSqlDatabase(countingStorage(storage, counter)));
      const costOf = async (work: () => Promise<unknown>) => {
        counter.reset();
        await work();
        return counter.cost;
      };
      const messages = Array.from({ length: 100 }, (_, n) => messageOf("c", `m${n}`));
      expect(await costOf(() => store.createConversation(conversationOf("c")))).toMatchObject({
        rowsWritten: 1,
      });
      expect(await costOf(() => store.appendMessages("c", messages))).toMatchObject({ rowsWritten: 201 });
      expect(await costOf(() => store.appendMessages("c", [messageOf("c", "one")]))).toMatchObject({
        statements: 3,
        rowsWritten: 3,
      });
      expect(await costOf(() => store.createTurn(turnOf("c", "t")))).toMatchObject({ rowsWritten: 3 });
      expect(await costOf(() => store.updateTurn(turnOf("c", "t")))).toMatchObject({ rowsWritten: 1 });
      for (const order of ["asc", "desc"] as const) {
        const cost = await costOf(() => store.getMessages("c", { limit: 2, order }));
        expect(cost).toMatchObject({ statements: 1, rowsWritten: 0 });
        expect(cost.rowsRead).toBeLessThanOrEqual(3);
      }
      expect(await costOf(() => store.getTurn("c", "t"))).toMatchObject({ statements: 1, rowsWritten: 0 });
    });
  });
});

describe("the system's clock and ids", () => {
  it("sleeps, and wakes at once on abort", async () => {
    const before = systemClock.now();
    await systemClock.sleep(5);
    expect(systemClock.now()).toBeGreaterThanOrEqual(before);
    await expect(systemClock.sleep(60_000, AbortSignal.abort("before"))).rejects.toBe("before");
    const abort = new AbortController();
    const sleeping = systemClock.sleep(60_000, abort.signal);
    abort.abort("during");
    await expect(sleeping).rejects.toBe("during");
  });

  it("gives ascending ULIDs", () => {
    const ids = Array.from({ length: 100 }, () => systemIds.ulid());
    expect(ids).toEqual([...new Set(ids)].sort());
    for (const id of ids) expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
  });
});

describe("objects in R2", () => objectStoreContract(() => new R2ObjectStore(Reflect.get(env, "BUCKET"))));

describe("turns on workerd", () => {
  turnStoreContract(
    (body) =>
      inFreshObject(({ storage }) =>
        body({ db: new DurableSqlDatabase(storage), kv: new DurableKeyValue(storage) }),
      ),
    8,
  );
});

describe("staged changes on workerd", () => {
  const errors = vi.spyOn(console, "error");
  beforeEach(() => void errors.mockImplementation(() => undefined));
  afterEach(() => void errors.mockReset());

  stagingContract((body) => inFreshObject(({ storage }) => body(durableStorage(storage))));
});
