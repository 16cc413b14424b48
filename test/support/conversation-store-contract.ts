/** The contract of the engine's stores: in memory, on Node's SQLite and on a Durable Object's. */
import { expect, it } from "vitest";
import type { ConversationStore } from "../../src/engine/conversation-store.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "../../src/engine/records.ts";

/** Runs a test's body on a new store. */
export type WithStore = (body: (store: ConversationStore) => Promise<void>) => Promise<void>;

/** Returns a time that is some seconds after a fixed one. */
export const timeAt = (second: number) => new Date(1_767_225_600_000 + second * 1_000).toISOString();

export const conversationOf = (id: string, more: Partial<ConversationRecord> = {}): ConversationRecord => ({
  id,
  agent: "helper",
  createdAt: timeAt(0),
  updatedAt: timeAt(0),
  ...more,
});

export const messageOf = (
  conversationId: string,
  id: string,
  more: Partial<ConversationMessage> = {},
): ConversationMessage => ({
  id,
  conversationId,
  role: "user",
  content: `said ${id}`,
  createdAt: timeAt(1),
  ...more,
});

export const turnOf = (
  conversationId: string,
  id: string,
  more: Partial<ConversationTurn> = {},
): ConversationTurn => ({
  id,
  conversationId,
  agent: "helper",
  inputMessages: [messageOf(conversationId, `in-${id}`)],
  outputMessages: [],
  providerCalls: [],
  status: "running",
  startedAt: timeAt(1),
  ...more,
});

const refused = (code: string) => expect.objectContaining({ name: "DramatisError", code });
const idsOf = (records: readonly { id: string }[]) => records.map(({ id }) => id);

/** Registers the tests. */
export function conversationStoreContract(withStore: WithStore): void {
  const withConversation = (body: (store: ConversationStore) => Promise<void>) =>
    withStore(async (store) => {
      await store.createConversation(conversationOf("c"));
      await body(store);
    });

  it("C3 STORE-1 conversations, messages and turns are read as written", async () => {
    await withStore(async (store) => {
      const conversation = conversationOf("c", {
        subjectId: "ann",
        title: "Größe 👋",
        metadata: { deep: [{ cohort: null }] },
      });
      await store.createConversation(conversation);
      expect(await store.getConversation("c")).toEqual(conversation);
      const messages = [
        messageOf("c", "m1", { role: "system", name: "rules" }),
        messageOf("c", "m2", { content: { any: ["thing", 1, null] }, metadata: { a: 1 } }),
        messageOf("c", "m3", { role: "other", content: null, providerMessageId: "p" }),
      ];
      await store.appendMessages("c", messages);
      await store.appendMessages("c", []);
      expect(await store.getMessages("c")).toEqual(messages);
      const turn = turnOf("c", "t", {
        status: "failed",
        outputMessages: messages,
        error: { message: "no", code: "MODEL_FAILED", provider: "openai", raw: { status: 500 } },
        finishedAt: timeAt(9),
        metadata: { route: "a" },
      });
      await store.createTurn(turn);
      expect(await store.getTurn("c", "t")).toEqual(turn);
      expect(await store.listTurns("c")).toEqual([turn]);
    });
  });

  it("C3 STORE-1 inputs and results are copies; `undefined` keys are absent", async () => {
    await withConversation(async (store) => {
      const content = { list: [1], gone: undefined };
      const given = messageOf("c", "m", { content });
      await store.appendMessages("c", [given]);
      content.list.push(2);
      const [first] = await store.getMessages("c");
      expect(first?.content).toEqual({ list: [1] });
      expect(Object.keys(Object(first?.content))).toEqual(["list"]);
      Object.assign(Object(first?.content), { list: "changed" });
      expect((await store.getMessages("c"))[0]?.content).toEqual({ list: [1] });
    });
  });

  it("C3 a reader gets null or an empty list for a missing record", async () => {
    await withConversation(async (store) => {
      expect(await store.getConversation("nobody")).toBeNull();
      expect(await store.getTurn("nobody", "t")).toBeNull();
      expect(await store.getTurn("c", "t")).toBeNull();
      expect(await store.getMessages("nobody")).toEqual([]);
      expect(await store.listTurns("nobody")).toEqual([]);
      expect(await store.getMessages("c")).toEqual([]);
    });
  });

  it("C3 STORE-4 duplicate ids are refused, also within one list, and the call stores no record", async () => {
    await withConversation(async (store) => {
      await store.appendMessages("c", [messageOf("c", "m1")]);
      await store.createTurn(turnOf("c", "t1"));
      await expect(store.createConversation(conversationOf("c", { agent: "x" }))).rejects.toEqual(
        refused("CONFLICT"),
      );
      const both = [messageOf("c", "m2"), messageOf("c", "m1")];
      await expect(store.appendMessages("c", both)).rejects.toEqual(refused("CONFLICT"));
      const twice = [messageOf("c", "m3"), messageOf("c", "m3")];
      await expect(store.appendMessages("c", twice)).rejects.toEqual(refused("CONFLICT"));
      await expect(store.createTurn(turnOf("c", "t1"))).rejects.toEqual(refused("CONFLICT"));
      expect(idsOf(await store.getMessages("c"))).toEqual(["m1"]);
      expect((await store.getConversation("c"))?.agent).toBe("helper");
      await store.createConversation(conversationOf("d"));
      await store.appendMessages("d", [messageOf("d", "m1")]);
      await store.createTurn(turnOf("d", "t1"));
      expect(idsOf(await store.listTurns("d"))).toEqual(["t1"]);
    });
  });

  it("C3 STORE-4 writing to a missing record is refused, and creates no record", async () => {
    await withConversation(async (store) => {
      const missing = [
        store.updateConversation(conversationOf("nobody")),
        store.appendMessages("nobody", [messageOf("nobody", "m")]),
        store.appendMessages("nobody", []),
        store.createTurn(turnOf("nobody", "t")),
        store.updateTurn(turnOf("nobody", "t")),
        store.updateTurn(turnOf("c", "t")),
      ];
      for (const write of missing) await expect(write).rejects.toEqual(refused("NOT_FOUND"));
      expect(await store.getConversation("nobody")).toBeNull();
      expect(await store.getTurn("c", "t")).toBeNull();
    });
  });

  it("C3 STORE-2 STORE-5 values that cannot be stored are refused completely", async () => {
    await withConversation(async (store) => {
      const circular: Record<string, unknown> = {};
      circular.self = circular;
      const bad = [1n, () => 1, Number.NaN, new Date(0), circular, undefined, "\ud800", new Map()];
      for (const content of bad) {
        const messages = [messageOf("c", "fine"), messageOf("c", "bad", { content })];
        await expect(store.appendMessages("c", messages)).rejects.toEqual(refused("INVALID_INPUT"));
      }
      const others = [
        store.appendMessages("c", [messageOf("d", "m")]),
        store.appendMessages("c", [messageOf("c", "")]),
        store.appendMessages("c", [messageOf("c", "m", { createdAt: "yesterday" })]),
        store.createTurn(turnOf("c", "t", { metadata: { bad: 1n } })),
        store.updateConversation(conversationOf("c", { updatedAt: "" })),
        store.getMessages("c", { limit: -1 }),
        store.listTurns("c", { limit: 1.5 }),
      ];
      for (const write of others) await expect(write).rejects.toEqual(refused("INVALID_INPUT"));
      expect(await store.getMessages("c")).toEqual([]);
      expect(await store.listTurns("c")).toEqual([]);
    });
  });

  it("C3 STORE-2 a turn is completed with its messages and the conversation's time, atomically", async () => {
    await withConversation(async (store) => {
      await store.appendMessages("c", [messageOf("c", "m1")]);
      await store.createTurn(turnOf("c", "t"));
      const done = (...ids: string[]) =>
        turnOf("c", "t", { status: "succeeded", outputMessages: ids.map((id) => messageOf("c", id)) });
      const refusals: [ConversationTurn, updatedAt: string, code: string][] = [
        [done("m2", "m1"), timeAt(9), "CONFLICT"],
        [done("m2"), "yesterday", "INVALID_INPUT"],
        [{ ...done("m2"), id: "other" }, timeAt(9), "NOT_FOUND"],
        [{ ...done(), conversationId: "nobody" }, timeAt(9), "NOT_FOUND"],
        [{ ...done(), outputMessages: [messageOf("d", "m2")] }, timeAt(9), "INVALID_INPUT"],
      ];
      for (const [turn, at, code] of refusals) {
        await expect(store.completeTurn?.(turn, at)).rejects.toEqual(refused(code));
      }
      expect(idsOf(await store.getMessages("c"))).toEqual(["m1"]);
      expect(await store.getTurn("c", "t")).toEqual(turnOf("c", "t"));
      expect(await store.getConversation("c")).toEqual(conversationOf("c"));
      await store.completeTurn?.(done("m2", "m3"), timeAt(9));
      expect(idsOf(await store.getMessages("c"))).toEqual(["m1", "m2", "m3"]);
      expect(await store.getTurn("c", "t")).toEqual(done("m2", "m3"));
      expect(await store.getConversation("c")).toEqual(conversationOf("c", { updatedAt: timeAt(9) }));
    });
  });

  it("C4 STORE-3 messages ascend by time unless asked otherwise, and a limit holds in both orders", async () => {
    await withConversation(async (store) => {
      const at = (id: string, second: number) => messageOf("c", id, { createdAt: timeAt(second) });
      await store.appendMessages("c", [at("b", 5), at("a", 1)]);
      await store.appendMessages("c", [at("d", 9), at("b2", 5), at("c", 7)]);
      const all = ["a", "b", "b2", "c", "d"];
      expect(idsOf(await store.getMessages("c"))).toEqual(all);
      expect(idsOf(await store.getMessages("c", { order: "desc" }))).toEqual(all.toReversed());
      expect(idsOf(await store.getMessages("c", { limit: 2 }))).toEqual(["a", "b"]);
      expect(idsOf(await store.getMessages("c", { limit: 3, order: "desc" }))).toEqual(["d", "c", "b2"]);
      expect(await store.getMessages("c", { limit: 0 })).toEqual([]);
      expect(idsOf(await store.getMessages("c", { limit: 99 }))).toEqual(all);
    });
  });

  it("C4 STORE-3 times are compared as times, whatever their notation", async () => {
    await withConversation(async (store) => {
      const times = {
        late: "2026-01-01T12:00:00.5Z",
        early: "2026-01-01T12:30:00+01:00",
        mid: "2026-01-01T12:00:00Z",
      };
      const messages = Object.entries(times).map(([id, createdAt]) => messageOf("c", id, { createdAt }));
      await store.appendMessages("c", messages);
      expect(idsOf(await store.getMessages("c"))).toEqual(["early", "mid", "late"]);
    });
  });

  it("C4 STORE-3 pages of turns work in both orders, also after an update of their time", async () => {
    await withConversation(async (store) => {
      for (const [index, id] of ["t1", "t2", "t3"].entries()) {
        await store.createTurn(turnOf("c", id, { startedAt: timeAt(index) }));
      }
      expect(idsOf(await store.listTurns("c", { limit: 2, order: "desc" }))).toEqual(["t3", "t2"]);
      await store.updateTurn(turnOf("c", "t1", { startedAt: timeAt(1), status: "succeeded" }));
      expect(idsOf(await store.listTurns("c"))).toEqual(["t1", "t2", "t3"]);
      await store.updateTurn(turnOf("c", "t1", { startedAt: timeAt(7), status: "succeeded" }));
      expect(idsOf(await store.listTurns("c"))).toEqual(["t2", "t3", "t1"]);
      expect((await store.getTurn("c", "t1"))?.status).toBe("succeeded");
    });
  });

  it("C3 STORE-1 long contents are read exactly as written, before and after they are shortened", async () => {
    await withConversation(async (store) => {
      const long = "👋 long ".repeat(400_000);
      await store.appendMessages("c", [messageOf("c", "m", { content: long })]);
      expect((await store.getMessages("c"))[0]?.content).toBe(long);
      const turn = turnOf("c", "t", { metadata: { long } });
      await store.createTurn(turn);
      expect(await store.getTurn("c", "t")).toEqual(turn);
      await store.updateTurn(turnOf("c", "t"));
      expect(await store.getTurn("c", "t")).toEqual(turnOf("c", "t"));
    });
  });
}
