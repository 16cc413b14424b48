/** The engine's stores in Node: one contract, random operations, and what SQLite writes and reads. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ConversationStore } from "../../src/engine/conversation-store.ts";
import { InMemoryConversationStore } from "../../src/engine/in-memory-store.ts";
import { SqliteConversationStore } from "../../src/engine/sqlite-store.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import {
  conversationOf,
  conversationStoreContract,
  messageOf,
  timeAt,
  turnOf,
  type WithStore,
} from "../support/conversation-store-contract.ts";

const inSqlite: WithStore = async (body) => {
  const database = new NodeSqlDatabase();
  try {
    await body(new SqliteConversationStore(database));
  } finally {
    database.close();
  }
};

describe("conversations in memory", () => {
  conversationStoreContract((body) => body(new InMemoryConversationStore()));
});

describe("conversations in Node's SQLite", () => {
  conversationStoreContract(inSqlite);

  it("a second store on the same database finds what the first wrote", async () => {
    const database = new NodeSqlDatabase();
    await new SqliteConversationStore(database).createConversation(conversationOf("c"));
    expect(await new SqliteConversationStore(database).getConversation("c")).toEqual(conversationOf("c"));
    database.close();
  });

  it("no pieces of long texts stay behind, and their keys do not meet", async () => {
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
    id.map(
      (conv): Operation =>
        (store) =>
          store.getConversation(conv),
    ),
  );
  /** What an operation answers, or the code it is refused with. */
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
