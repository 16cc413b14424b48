/** The engine's stores in Node: the contract, random operations, and SQLite's own behavior. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ConversationStore } from "../../src/engine/conversation-store.ts";
import { createConversationEngine } from "../../src/engine/engine.ts";
import { InMemoryConversationStore } from "../../src/engine/in-memory-store.ts";
import { SqliteConversationStore } from "../../src/engine/sqlite-store.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { SqlDatabase } from "../../src/ports/sql-database.ts";
import {
  conversationOf,
  conversationStoreContract,
  messageOf,
  timeAt,
  turnOf,
  type WithStore,
} from "../support/conversation-store-contract.ts";
import { ScriptedAdapter } from "../support/scripted-adapter.ts";

const inSqlite: WithStore = async (body) => {
  const database = new NodeSqlDatabase();
  try {
    await body(new SqliteConversationStore(database));
  } finally {
    database.close();
  }
};

/** A database that accepts a number of further writes and then fails, as if the process had ended. */
function endingDatabase(database: NodeSqlDatabase) {
  let left = Number.POSITIVE_INFINITY;
  const ending: SqlDatabase = {
    run(statement, ...values) {
      if (left-- <= 0) throw new Error("The process has ended.");
      database.run(statement, ...values);
    },
    all: (statement, ...values) => database.all(statement, ...values),
    each: (statement, ...values) => database.each(statement, ...values),
    transaction: (body) => database.transaction(body),
  };
  return {
    database: ending,
    after(writes: number) {
      left = writes;
    },
  };
}

describe("conversations in memory", () => {
  conversationStoreContract((body) => body(new InMemoryConversationStore()));
});

describe("conversations in Node's SQLite", () => {
  conversationStoreContract(inSqlite);

  it("a second store on the same database finds the first store's records", async () => {
    const database = new NodeSqlDatabase();
    await new SqliteConversationStore(database).createConversation(conversationOf("c"));
    expect(await new SqliteConversationStore(database).getConversation("c")).toEqual(conversationOf("c"));
    database.close();
  });

  it("STORE-6 a database of a newer release is refused, and is not written", async () => {
    const database = new NodeSqlDatabase();
    const versions = () => database.all("SELECT version FROM engine_schema LIMIT 2");
    await new SqliteConversationStore(database).createConversation(conversationOf("c"));
    expect(versions()).toEqual([{ version: 1 }]);
    database.run("UPDATE engine_schema SET version = 2");
    database.run("DROP TABLE engine_turns");
    const open = () => new SqliteConversationStore(database);
    expect(open).toThrowError(expect.objectContaining({ code: "UNAVAILABLE", retriable: true }));
    expect(versions()).toEqual([{ version: 2 }]);
    expect(database.all("SELECT name FROM sqlite_master WHERE name = 'engine_turns' LIMIT 1")).toEqual([]);
    database.close();
  });

  it("no pieces of long texts remain, and their keys do not collide", async () => {
    const database = new NodeSqlDatabase();
    const store = new SqliteConversationStore(database);
    const long = "x".repeat(1_600_000);
    const awkward = ['a","b', "a"];
    for (const id of awkward) {
      await store.createConversation(conversationOf(id, { metadata: { long } }));
      await store.createTurn(turnOf(id, 'b","c', { metadata: { long: `${id}${long}` } }));
      await store.createTurn(turnOf(id, "c", { metadata: { long: `${id} c ${long}` } }));
    }
    for (const id of awkward) {
      expect((await store.getTurn(id, "c"))?.metadata).toEqual({ long: `${id} c ${long}` });
      await store.updateConversation(conversationOf(id));
      for (const turn of ['b","c', "c"]) await store.updateTurn(turnOf(id, turn));
    }
    expect(database.all("SELECT key FROM cf_agents_long_text LIMIT 10")).toEqual([]);
    database.close();
  });
});

describe("a process that ends in the middle of a turn", () => {
  it("C5 ENGINE-5 STORE-2 leaves either a finished turn with its answer, or an unfinished turn without an answer", async () => {
    const ends = new Set<string>();
    for (let writes = 0; !ends.has("succeeded 2"); writes++) {
      const raw = new NodeSqlDatabase();
      const store = new SqliteConversationStore(raw);
      await store.createConversation(conversationOf("c"));
      await store.appendMessages("c", [messageOf("c", "m")]);
      const ending = endingDatabase(raw);
      const engine = createConversationEngine({
        ...{ defaultAgent: "helper", store: new SqliteConversationStore(ending.database) },
        providers: { scripted: new ScriptedAdapter() },
        defaultModels: { scripted: "model-1" },
      });
      ending.after(writes);
      await engine.runTurn({ conversationId: "c" }).catch(() => {});
      const [turn] = await store.listTurns("c");
      ends.add(`${turn?.status} ${(await store.getMessages("c")).length}`);
      raw.close();
    }
    expect([...ends]).toEqual(["undefined 1", "running 1", "succeeded 2"]);
  });
});

describe("random operations", () => {
  const id = fc.constantFrom("a", "b", "c");
  const second = fc.nat(3);
  const list = fc.record({ limit: fc.nat(4), order: fc.constantFrom("asc" as const, "desc" as const) });
  type Operation = (store: ConversationStore) => Promise<unknown>;
  const operation: fc.Arbitrary<Operation> = fc.oneof(
    fc.tuple(id, second).map(
      ([conv, at]): Operation =>
        (store) =>
          store.createConversation(conversationOf(conv, { updatedAt: timeAt(at) })),
    ),
    fc.tuple(id, second).map(
      ([conv, at]): Operation =>
        (store) =>
          store.updateConversation(conversationOf(conv, { updatedAt: timeAt(at) })),
    ),
    fc.tuple(id, fc.array(fc.tuple(fc.nat(9), second), { maxLength: 3 })).map(
      ([conv, given]): Operation =>
        (store) =>
          store.appendMessages(
            conv,
            given.map(([n, at]) => messageOf(conv, `m${n}`, { createdAt: timeAt(at) })),
          ),
    ),
    fc.tuple(id, fc.nat(3), second).map(
      ([conv, n, at]): Operation =>
        (store) =>
          store.createTurn(turnOf(conv, `t${n}`, { startedAt: timeAt(at) })),
    ),
    fc.tuple(id, fc.nat(3), second).map(
      ([conv, n, at]): Operation =>
        (store) =>
          store.updateTurn(turnOf(conv, `t${n}`, { startedAt: timeAt(at), status: "succeeded" })),
    ),
    fc.tuple(id, list).map(
      ([conv, options]): Operation =>
        (store) =>
          store.getMessages(conv, options),
    ),
    fc.tuple(id, list).map(
      ([conv, options]): Operation =>
        (store) =>
          store.listTurns(conv, options),
    ),
    fc.tuple(id, fc.nat(3)).map(
      ([conv, n]): Operation =>
        (store) =>
          store.getTurn(conv, `t${n}`),
    ),
    fc.tuple(id, fc.nat(3), fc.nat(9), second).map(
      ([conv, n, m, at]): Operation =>
        async (store) =>
          store.completeTurn?.(
            turnOf(conv, `t${n}`, { status: "succeeded", outputMessages: [messageOf(conv, `m${m}`)] }),
            timeAt(at),
          ),
    ),
    id.map(
      (conv): Operation =>
        (store) =>
          store.getConversation(conv),
    ),
  );
  /** Returns the result of an operation, or the code of its error. */
  const answerOf = (operation: Operation, store: ConversationStore) =>
    operation(store).then(
      (value) => ({ value }),
      (error: unknown) => ({ refused: Object(error).code }),
    );

  it("C3 any sequence of operations has the same answers in memory and in SQLite", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), (operations) =>
        inSqlite(async (sqlite) => {
          const memory = new InMemoryConversationStore();
          for (const one of operations) {
            expect(await answerOf(one, sqlite)).toEqual(await answerOf(one, memory));
          }
        }),
      ),
      { numRuns: 150 },
    );
  });
});
