/** Sessions in a real actor, called by RPC, and their stores and functions on workerd. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { describe, expect, it } from "vitest";
import { openSessionTables } from "../../src/agents/base/storage/session-tables.ts";
import { compactSession, type SummariserInput } from "../../src/memory/session/compaction.ts";
import { EventStore } from "../../src/memory/session/event-store.ts";
import { messageToEvent } from "../../src/memory/session/events.ts";
import { LongText } from "../../src/memory/session/long-text.ts";
import { EventAction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import { SessionStore } from "../../src/memory/session/session-store.ts";
import { SqlSessionTable } from "../../src/memory/session/session-table.ts";
import { extractiveSummariser } from "../../src/memory/session/summarisers.ts";
import { buildWorkingContext } from "../../src/memory/session/working-context.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import type { DramatisError } from "../../src/shared/errors.ts";
import type { PageOptions } from "../../src/shared/page.ts";
import { CostCounter } from "../support/counting.ts";
import { countingStorage } from "../support/counting-storage.ts";
import {
  DESIGN_EVENTS,
  DESIGN_INDEX,
  DESIGN_READ,
  DESIGN_SESSIONS,
  writeDesignRows,
} from "../support/design-tables.ts";
import { eventFunctionsContract } from "../support/event-functions-contract.ts";
import { eventStoreContract } from "../support/event-store-contract.ts";
import { agent, compaction, everyAction, request, result, user } from "../support/events.ts";
import { turnOfEvents } from "../support/histories.ts";
import type { WithPorts } from "../support/port-contract.ts";
import { sessionStoreContract } from "../support/session-store-contract.ts";
import type { PlainSessionAgent } from "./worker.ts";
import { createAgent, createConversation } from "./world.ts";

const freshAgent = (name: string = crypto.randomUUID()) => getAgentByName(exports.PlainSessionAgent, name);

const users = (count: number) => Array.from({ length: count }, (_, i) => user(`e${i}`));
const seqs = (events: readonly SessionEvent[]) => events.map(({ seq }) => seq);
/** Returns the error of a call. Awaits it at once, because an RPC promise that is not awaited counts as unhandled. */
const failureOf = (call: () => Promise<unknown>): Promise<unknown> =>
  call().then(
    (value) => new Error(`not refused, but answered ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );

describe("functions over events on workerd", () => eventFunctionsContract());

const onWorkerd: WithPorts = (body) =>
  runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) =>
    body({ db: new DurableSqlDatabase(storage), kv: new DurableKeyValue(storage) }),
  );

describe("stores on workerd", () => {
  eventStoreContract(onWorkerd);
  sessionStoreContract(onWorkerd);
});

describe("SessionAgent", () => {
  it("M1 AGENT-1 both tables exist at construction, with their keys, and survive another construction", async () => {
    const stub = await freshAgent();
    const columns = () =>
      runInDurableObject(stub, (_, { storage }) => {
        const of = (table: string) =>
          storage.sql.exec(`SELECT name, pk FROM pragma_table_info('${table}')`).toArray();
        return { sessions: of("cf_agents_sessions"), events: of("cf_agents_events") };
      });
    const { sessions, events } = await columns();
    const names = (rows: typeof sessions) => rows.map(({ name }) => name);
    expect(names(sessions)).toEqual(
      expect.arrayContaining(["id", "agent_id", "created_at", "updated_at", "metadata"]),
    );
    expect(names(events)).toEqual(
      expect.arrayContaining(["id", "session_id", "seq", "action", "content", "metadata", "created_at"]),
    );
    const key = events.filter(({ pk }) => pk !== 0).sort((a, b) => Number(a.pk) - Number(b.pk));
    expect(names(key)).toEqual(["session_id", "seq"]);
    const session = await stub.createSession();
    await stub.appendEvents(session, users(2));
    await evictDurableObject(stub);
    expect(await stub.loadEvents(session)).toHaveLength(2);
    expect(await columns()).toEqual({ sessions, events });
  });

  it("M2 M23 creates, gets and lists sessions: newest first, metadata as JSON, times in whole milliseconds", async () => {
    const stub = await freshAgent("agent-of-m2");
    const before = Date.now();
    const first = await stub.createSession({ topic: "ä", nested: { n: [1] } });
    const second = await stub.createSession();
    expect(await stub.getSession("sess_missing")).toBeNull();
    const stored = await stub.getSession(first);
    expect(stored).toEqual({
      id: first,
      agent_id: "agent-of-m2",
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      metadata: '{"topic":"ä","nested":{"n":[1]}}',
    });
    for (const time of [stored?.created_at, stored?.updated_at]) {
      expect(Number.isSafeInteger(time)).toBe(true);
      expect(time).toBeGreaterThanOrEqual(before);
    }
    expect(await stub.getSession(second)).toMatchObject({ metadata: null });
    const listed = async () => (await stub.listSessions()).items.map(({ id }) => id);
    expect(await listed()).toEqual([second, first]);
    await expect.poll(() => Date.now()).toBeGreaterThan(stored?.updated_at ?? 0);
    await stub.appendEvents(first, users(1));
    expect(await listed()).toEqual([second, first]);
    const touched = await stub.getSession(first);
    expect(touched?.updated_at).toBeGreaterThan(touched?.created_at ?? 0);
  });

  it("M3 SESSIONS-2 deletes a session with its events and leaves others alone", async () => {
    const stub = await freshAgent();
    const [kept, gone] = [await stub.createSession(), await stub.createSession()];
    await stub.appendEvents(kept, users(3));
    await stub.appendEvents(gone, users(3));
    await stub.deleteSession(gone);
    expect(await stub.getSession(gone)).toBeNull();
    expect(await stub.loadEvents(gone)).toEqual([]);
    expect(await stub.loadEvents(kept)).toHaveLength(3);
    expect((await stub.listSessions()).items).toHaveLength(1);
    await stub.deleteSession(gone);
    expect(await failureOf(() => stub.appendEvents(gone, users(1)))).toMatchObject({ code: "NOT_FOUND" });
  });

  it("M3 SESSIONS-2 a delete that fails half-way is rolled back", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(session, users(3));
    await runInDurableObject(stub, (_, { storage }) => {
      storage.sql.exec(`CREATE TRIGGER stuck BEFORE DELETE ON cf_agents_events WHEN old.seq = 1
        BEGIN SELECT raise(ABORT, 'stuck'); END`);
    });
    expect(String(await failureOf(() => stub.deleteSession(session)))).toContain("stuck");
    expect(await stub.getSession(session)).not.toBeNull();
    expect(await stub.loadEvents(session)).toHaveLength(3);
  });

  it("M4 SESSIONS-1 numbers ascend from 0 without a gap, whatever numbers the events contain", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(
      session,
      users(3).map((event) => ({ ...event, seq: 40, sessionId: "elsewhere" })),
    );
    await stub.appendEvents(session, []);
    await stub.appendEvents(session, users(5).slice(3));
    const events = await stub.loadEvents(session);
    expect(seqs(events)).toEqual([0, 1, 2, 3, 4]);
    expect(new Set(events.map(({ sessionId }) => sessionId))).toEqual(new Set([session]));
  });

  it("M4 an unknown session throws, and the error is readable on the other side", async () => {
    const stub = await freshAgent();
    for (const events of [users(1), []]) {
      expect(await failureOf(() => stub.appendEvents("sess_missing", events))).toMatchObject({
        name: "DramatisError",
        code: "NOT_FOUND",
        message: 'Session "sess_missing" not found. Create it with createSession() first.',
      });
    }
  });

  it("M4 SESSIONS-2 a batch with one invalid event appends no event and uses no number", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    const batch = [...users(2), user("bad", "\ud800")];
    expect(await failureOf(() => stub.appendEvents(session, batch))).toMatchObject({ code: "INVALID_INPUT" });
    expect(await stub.loadEvents(session)).toEqual([]);
    await stub.appendEvents(session, users(1));
    expect(seqs(await stub.loadEvents(session))).toEqual([0]);
  });

  it("M4 SESSIONS-3 a caller that lost the answer sends its batch again: one copy, also after a restart; other content is a CONFLICT", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(session, everyAction());
    await stub.appendEvents(session, everyAction());
    await evictDurableObject(stub);
    await stub.appendEvents(session, [...everyAction(), user("new")]);
    const events = await stub.loadEvents(session);
    expect(seqs(events)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    const changed = [user("newer"), { ...everyAction()[0], content: "changed" } as SessionEvent];
    expect(await failureOf(() => stub.appendEvents(session, changed))).toMatchObject({
      name: "DramatisError",
      code: "CONFLICT",
      message: expect.stringContaining('has an event "u" with other content'),
    });
    expect(await stub.loadEvents(session)).toEqual(events);
  });

  it("M1 DESIGN-1 an actor with the tables of the design it follows takes their sessions over", async () => {
    const name = crypto.randomUUID();
    const bare = exports.PlainSessionAgent.getByName(name);
    await runInDurableObject(bare, async (_, { storage }) => {
      await storage.deleteAll();
      const db = new DurableSqlDatabase(storage);
      for (const statement of [DESIGN_SESSIONS, DESIGN_EVENTS, DESIGN_INDEX]) db.run(statement);
      writeDesignRows(db);
    });
    await evictDurableObject(bare);
    const stub = await freshAgent(name);
    expect((await stub.listSessions()).items.map(({ id }) => id)).toEqual(["s-2", "s-1"]);
    expect(await stub.loadEvents("s-1")).toEqual(DESIGN_READ);
    await stub.appendEvents("s-1", [...(await stub.loadEvents("s-1")), user("next")]);
    await evictDurableObject(stub);
    expect(await stub.loadEvents("s-1", { limit: 1 })).toMatchObject([{ seq: 8, id: "next" }]);
  });

  it("DESIGN-2 an actor with tables of another origin answers every call with UNAVAILABLE and the remedy", async () => {
    const name = crypto.randomUUID();
    const bare = exports.PlainSessionAgent.getByName(name);
    await runInDurableObject(bare, async (_, { storage }) => {
      await storage.deleteAll();
      storage.sql.exec("CREATE TABLE cf_agents_events (id INTEGER PRIMARY KEY, type TEXT, event TEXT)");
    });
    await evictDurableObject(bare);
    const stub = await freshAgent(name);
    for (const call of [() => stub.listSessions(), () => stub.createSession()]) {
      expect(await failureOf(call)).toMatchObject({
        name: "DramatisError",
        code: "UNAVAILABLE",
        message: expect.stringContaining("Rename or drop it"),
      });
    }
    await runInDurableObject(stub, (_, { storage }) => void storage.sql.exec("DROP TABLE cf_agents_events"));
    await evictDurableObject(stub);
    expect(await stub.createSession()).toMatch(/^sess_/);
  });

  it("M2 SESSIONS-4 lists more than a page of sessions by cursors", async () => {
    const stub = await freshAgent();
    const ids = await runInDurableObject(stub, (instance) =>
      Promise.all(Array.from({ length: 1_050 }, () => instance.createSession())),
    );
    const listed: string[] = [];
    for (let cursor: string | undefined = undefined, page = 0; page === 0 || cursor !== undefined; page++) {
      const { items, nextCursor }: Awaited<ReturnType<PlainSessionAgent["listSessions"]>> =
        await stub.listSessions({ limit: 200, ...(cursor === undefined ? {} : { cursor }) });
      listed.push(...items.map(({ id }) => id));
      cursor = nextCursor;
    }
    expect(listed).toEqual(ids.toReversed());
    const bad: [string, PageOptions][] = [
      ["/options/limit", { limit: 201 }],
      ["/options/order", { order: "newest" as "asc" }],
      ["/options/cursor", { cursor: "" }],
    ];
    for (const [path, options] of bad) {
      expect(await failureOf(() => stub.listSessions(options))).toMatchObject({
        code: "INVALID_INPUT",
        options: { errors: [{ path }] },
      });
    }
  });

  it("M5 SESSIONS-1 numbers are not reused after the newest events were deleted or after a restart", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(session, users(3));
    await stub.deleteEvents(session, ["e2"]);
    await stub.appendEvents(session, [user("next")]);
    expect(seqs(await stub.loadEvents(session))).toEqual([0, 1, 3]);
    await stub.deleteEvents(session, ["e0", "e1", "next"]);
    await evictDurableObject(stub);
    await stub.appendEvents(session, [user("last")]);
    expect(seqs(await stub.loadEvents(session))).toEqual([4]);
  });

  it("M6 loads the most recent 50 by default; tail, since and actions choose others", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(
      session,
      users(70).map((event, i) => ({ ...event, timestamp: i })),
    );
    expect(seqs(await stub.loadEvents(session))).toEqual(Array.from({ length: 50 }, (_, i) => i + 20));
    expect(seqs(await stub.loadEvents(session, { limit: 2 }))).toEqual([68, 69]);
    expect(seqs(await stub.loadEvents(session, { limit: 2, tail: false }))).toEqual([0, 1]);
    expect(seqs(await stub.loadEvents(session, { since: 68 }))).toEqual([68, 69]);
    expect(await stub.loadEvents(session, { actions: [EventAction.COMPACTION] })).toEqual([]);
    expect(await stub.loadEvents("sess_missing")).toEqual([]);
  });

  it("M7 deletes only the named events of that session, also hundreds at once", async () => {
    const stub = await freshAgent();
    const [one, two] = [await stub.createSession(), await stub.createSession()];
    for (const session of [one, two]) await stub.appendEvents(session, users(400));
    await stub.deleteEvents(one, [...users(390).map(({ id }) => id), "never there"]);
    expect(seqs(await stub.loadEvents(one))).toEqual([390, 391, 392, 393, 394, 395, 396, 397, 398, 399]);
    expect(await stub.loadEvents(two, { limit: 1000 })).toHaveLength(400);
  });

  it("M8 M9 M10 every action survives the round trip through RPC and rows", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(session, everyAction());
    expect(await stub.loadEvents(session)).toEqual(
      everyAction().map((event) => ({ ...event, sessionId: session })),
    );
  });

  it("M8 EVENT-2 a row of a later version is readable and never becomes a message", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(session, [user("q")]);
    const sent = await runInDurableObject(stub, (instance, { storage }) => {
      storage.sql.exec("UPDATE cf_agents_events SET action = 'root_override'");
      return instance.buildWorkingContext(session).messages;
    });
    expect(sent).toEqual([]);
    expect(await stub.loadEvents(session)).toMatchObject([
      { action: "unknown", storedAction: "root_override", content: "q" },
    ]);
  });

  it("M14 M16 a remote caller builds a context from loaded events and sends its new messages back", async () => {
    const stub = await getAgentByName<Cloudflare.Env, PlainSessionAgent>(
      exports.PlainSessionAgent,
      crypto.randomUUID(),
    );
    const sessionId = await stub.createSession();
    await stub.appendEvents(sessionId, [user("q1"), agent("a1")]);
    const events = await stub.loadEvents(sessionId, { limit: 10 });
    const context = buildWorkingContext(events, { systemInstructions: ["You are a helpful assistant."] });
    context.addMessage({ role: "user", content: "q2" });
    context.addMessage({ role: "assistant", content: "a2" });
    await stub.appendEvents(
      sessionId,
      context.getNewMessages().map((message) => messageToEvent(sessionId, message)),
    );
    expect((await stub.loadEvents(sessionId)).map(({ action, content }) => [action, content])).toEqual([
      ["user_message", "q1"],
      ["agent_message", "a1"],
      ["user_message", "q2"],
      ["agent_message", "a2"],
    ]);
  });

  it("M16 an actor's own turn persists its new messages with the turn", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    const first = await stub.handleUserMessage(session, "hello");
    expect(first).toBe("system: You are a helpful assistant.\nuser: hello");
    expect(await stub.handleUserMessage(session, "again")).toBe(
      `system: You are a helpful assistant.\nuser: hello\nassistant: ${first}\nuser: again`,
    );
    expect(seqs(await stub.loadEvents(session))).toEqual([0, 1, 2, 3]);
  });

  it("M17 two requests at once see each other's messages only after they are persisted", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await runInDurableObject(stub, (instance: PlainSessionAgent) => {
      const contents = (context: { messages: readonly { content: string | null }[] }) =>
        context.messages.map(({ content }) => content);
      const [one, two] = [instance.buildWorkingContext(session), instance.buildWorkingContext(session)];
      one.addMessage({ role: "user", content: "A?" });
      two.addMessage({ role: "user", content: "B?" });
      expect([contents(one), contents(two)]).toEqual([["A?"], ["B?"]]);
      expect(contents(instance.buildWorkingContext(session))).toEqual([]);
      instance.persistWorkingContext(session, one);
      expect([contents(two), contents(instance.buildWorkingContext(session))]).toEqual([["B?"], ["A?"]]);
      instance.persistWorkingContext(session, two);
      expect(contents(instance.buildWorkingContext(session))).toEqual(["A?", "B?"]);
    });
  });

  it("M16 persisting twice does not duplicate, and messages that could not be persisted stay new", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(session, users(2));
    await runInDurableObject(stub, (instance) => {
      const context = instance.buildWorkingContext(session);
      instance.persistWorkingContext(session, context);
      context.addMessage({ role: "user", content: "new" });
      expect(() => instance.persistWorkingContext("sess_missing", context)).toThrow("not found");
      expect(context.getNewMessages()).toHaveLength(1);
      instance.persistWorkingContext(session, context);
      instance.persistWorkingContext(session, context);
      context.addMessage({ role: "assistant", content: "answer" });
      instance.persistWorkingContext(session, context);
    });
    expect((await stub.loadEvents(session)).map(({ content }) => content)).toEqual([
      "e0",
      "e1",
      "new",
      "answer",
    ]);
  });

  it("M15 M20 M22 an actor's context takes a mapper, whole pairs only, and summaries for covered events", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(session, [
      user("q1"),
      request("r", "c"),
      result("t", "c"),
      agent("a1"),
      compaction("k", 1),
      user("q2"),
    ]);
    const contentsOf = (options?: Parameters<PlainSessionAgent["buildWorkingContext"]>[1]) =>
      runInDurableObject(stub, (instance) =>
        instance.buildWorkingContext(session, options).messages.map(({ content }) => content),
      );
    expect(await contentsOf()).toEqual(["summary k", "", "t", "a1", "q2"]);
    expect(await contentsOf({ limit: 4 })).toEqual(["summary k", "a1", "q2"]);
    expect(
      await contentsOf({
        eventToMessage: ({ content }) => (content === "q2" ? { role: "user", content: "!" } : null),
      }),
    ).toEqual(["!"]);
  });

  it("M6 M14 M22 an actor's context takes exactly the events that tail, since, actions, from and before select", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    const events = [
      user("q1"),
      agent("a1"),
      compaction("k", 2),
      user("q2"),
      request("r", "c"),
      result("t", "c"),
      agent("a2"),
      user("q3"),
      agent("a3"),
    ];
    await stub.appendEvents(
      session,
      events.map((event, seq) => ({ ...event, timestamp: 1_000 + seq })),
    );
    const contentsOf = (options: Parameters<PlainSessionAgent["buildWorkingContext"]>[1]) =>
      runInDurableObject(stub, (instance) =>
        instance.buildWorkingContext(session, options).messages.map(({ content }) => content),
      );
    const { USER_MESSAGE, AGENT_MESSAGE, TOOL_RESULT } = EventAction;
    expect(await contentsOf({})).toEqual(["summary k", "q2", "", "t", "a2", "q3", "a3"]);
    expect(await contentsOf({ limit: 3 })).toEqual(["summary k", "a2", "q3", "a3"]);
    expect(await contentsOf({ tail: true, limit: 2 })).toEqual(["summary k", "q3", "a3"]);
    expect(await contentsOf({ tail: false, limit: 2 })).toEqual(["q1", "a1"]);
    expect(await contentsOf({ tail: false, limit: 4 })).toEqual(["summary k", "q2"]);
    expect(await contentsOf({ since: 1_007 })).toEqual(["q3", "a3"]);
    expect(await contentsOf({ since: 1_009 })).toEqual([]);
    expect(await contentsOf({ actions: [USER_MESSAGE] })).toEqual(["q1", "q2", "q3"]);
    expect(await contentsOf({ actions: [USER_MESSAGE, AGENT_MESSAGE], limit: 3 })).toEqual([
      "a2",
      "q3",
      "a3",
    ]);
    expect(await contentsOf({ actions: [TOOL_RESULT] })).toEqual([]);
    expect(await contentsOf({ actions: [] })).toEqual([]);
    expect(await contentsOf({ from: 6 })).toEqual(["a2", "q3", "a3"]);
    expect(await contentsOf({ from: 3, before: 7 })).toEqual(["q2", "", "t", "a2"]);
    expect(await contentsOf({ from: 5, tail: false, limit: 2 })).toEqual(["a2"]);
    expect(await contentsOf({ before: 2 })).toEqual(["q1", "a1"]);
    expect(
      await contentsOf({ from: 0, tail: false, since: 1_003, actions: [USER_MESSAGE], limit: 1 }),
    ).toEqual(["q2"]);
    expect(await contentsOf({ from: 6, tokenBudget: 1_000 })).toEqual(["a2", "q3", "a3"]);
  });

  it("M22 M20 COMPACT-2 COMPACT-3 TOKEN-5 an actor's session is compacted twice, with a restart in between; its originals stay", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    const turns = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => {
        const n = from + index;
        return turnOfEvents(n, `question ${n}`, [[`result ${n}`]], `answer ${n}`);
      }).flat();
    const compact = (summary: string) =>
      runInDurableObject(stub, async (instance) => {
        const seen: SummariserInput[] = [];
        const summarise = async (input: SummariserInput) => {
          seen.push(input);
          await instance.appendEvents(session, [user(`beside ${summary} ${seen.length}`)]);
          return summary;
        };
        const done = await instance.compactSession(session, { tokenBudget: 400, summarise });
        return { done, seen };
      });
    const contextWithin = (tokenBudget: number) =>
      runInDurableObject(stub, (instance) => instance.buildWorkingContext(session, { tokenBudget }).messages);
    await stub.appendEvents(session, turns(0, 20));
    const first = await compact("one");
    expect(first.done).toMatchObject({ compactedEventCount: 72, summary: "one" });
    expect(first.seen).toHaveLength(3);
    await evictDurableObject(stub);
    await stub.appendEvents(session, turns(20, 60));
    const second = await compact("two");
    // 80 events, one event beside each summariser's round, the first compaction, then 40 turns. Two of the turns are
    // kept.
    expect(second.done?.compactedEventCount).toBe(80 + 3 + 1 + 38 * 4);
    expect(second.seen[0]?.previousSummary).toBe("one");
    expect(second.seen[0]?.messages[0]?.content).toBe("question 18");
    await evictDurableObject(stub);
    expect(
      await runInDurableObject(stub, (instance) =>
        instance.compactSession(session, { tokenBudget: 9_000, summarise: extractiveSummariser() }),
      ),
    ).toBeNull();
    const whole = await contextWithin(9_000);
    expect(whole.map(({ role }) => role).filter((role) => role === "system")).toHaveLength(1);
    expect(whole[0]?.content).toMatch(/nothing in it is an instruction\.\n\ntwo$/);
    expect(whole[1]?.content).toBe("question 58");
    await stub.appendEvents(session, turns(60, 160));
    const far = await contextWithin(1_000);
    expect(far[0]?.content).toBe(whole[0]?.content);
    expect(far[1]).toMatchObject({ role: "user" });
    expect(far.at(-1)?.content).toBe("answer 159");
    expect(far.length).toBeLessThan(120);
    const stored = await stub.loadEvents(session, { limit: 1_000 });
    expect(seqs(stored)).toEqual(stored.map((_, seq) => seq));
    const originals = stored.filter(
      ({ action, id }) => action !== EventAction.COMPACTION && !id.startsWith("beside"),
    );
    expect(originals.map(({ id, content }) => [id, content])).toEqual(
      turns(0, 160).map(({ id, content }) => [id, content]),
    );
    const counts = stored.flatMap((event) =>
      event.action === EventAction.COMPACTION ? [event.compactedEventCount] : [],
    );
    expect(counts).toEqual([72, second.done?.compactedEventCount]);
  });

  it("COMPACT-4 COMPACT-5 an actor refuses a compaction that was overtaken, and keeps its session when one fails", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    await stub.appendEvents(
      session,
      Array.from({ length: 30 }, (_, n) => turnOfEvents(n, `q${n}`, [], `a${n}`)).flat(),
    );
    const outcomes = await runInDurableObject(stub, async (instance) => {
      const compact = (summary: string) =>
        instance.compactSession(session, { tokenBudget: 100, summarise: async () => summary });
      const codeOf = (work: Promise<unknown>) =>
        work.then(
          () => "done",
          (error: DramatisError) => error.code,
        );
      return [
        await codeOf(compact("")),
        ...(await Promise.all([codeOf(compact("one")), codeOf(compact("two"))])),
      ];
    });
    expect(outcomes).toEqual(["MODEL_FAILED", "done", "CONFLICT"]);
    expect(await stub.loadEvents(session, { limit: 100 })).toHaveLength(61);
  });

  it("M19 AGENT-2 every method returns plain data over RPC; a context cannot be sent", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession({ a: 1 });
    await stub.appendEvents(session, everyAction());
    const answers = [
      session,
      await stub.getSession(session),
      await stub.listSessions(),
      await stub.loadEvents(session),
    ];
    for (const answer of answers) expect(JSON.parse(JSON.stringify(answer))).toEqual(answer);
    expect(await stub.deleteEvents(session, ["u"])).toBeUndefined();
    expect(await stub.appendEvents(session, [])).toBeUndefined();
    expect(await stub.deleteSession(session)).toBeUndefined();
    // SAFETY: the type of this result is `never`, because it cannot be sent.
    const local = stub as unknown as { buildWorkingContext(id: string): Promise<unknown> };
    expect(await failureOf(() => local.buildWorkingContext(session))).toMatchObject({
      name: "DataCloneError",
    });
  });

  it("M19 AGENT-2 bad input gets a typed refusal and changes no state", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    const endless: Record<string, object> = {};
    endless.self = endless;
    const bad: [string, () => Promise<unknown>][] = [
      [
        "/events/1/content",
        () => stub.appendEvents(session, [user("ok"), { ...user("x"), content: 1 } as never]),
      ],
      [
        "/events/0/action",
        () => stub.appendEvents(session, [{ ...user("x"), action: "unknown", storedAction: "y" }]),
      ],
      ["/events/0/timestamp", () => stub.appendEvents(session, [{ ...user("x"), timestamp: 1.5 }])],
      [
        "/events/0/metadata",
        () => stub.appendEvents(session, [{ ...user("x"), metadata: { at: new Date() } }]),
      ],
      ["/events/0/metadata", () => stub.appendEvents(session, [{ ...user("x"), metadata: endless }])],
      ["/events", () => stub.appendEvents(session, "events" as never)],
      ["/options/limit", () => stub.loadEvents(session, { limit: -1 })],
      ["/options/actions/0", () => stub.loadEvents(session, { actions: ["drop table" as never] })],
      ["/sessionId", () => stub.loadEvents({} as never)],
      ["/sessionId", () => stub.deleteSession("")],
      ["/eventIds/0", () => stub.deleteEvents(session, [1 as never])],
      ["/metadata", () => stub.createSession([] as never)],
    ];
    for (const [path, call] of bad) {
      expect(await failureOf(call), path).toMatchObject({
        name: "DramatisError",
        code: "INVALID_INPUT",
        options: { errors: [{ path }] },
      });
    }
    expect(await stub.loadEvents(session)).toEqual([]);
    expect((await stub.listSessions()).items).toHaveLength(1);
    await stub.appendEvents(session, [{ ...user("ok"), metadata: undefined } as never]);
    expect(await stub.loadEvents(session, { limit: undefined } as never)).toHaveLength(1);
  });

  it("M21 a tool result of 3 MB is read back exactly, the actor survives, and windows stay small", async () => {
    const stub = await freshAgent();
    const session = await stub.createSession();
    const large = "0123456789äöü😀\0".repeat(150_000);
    expect(new TextEncoder().encode(large).byteLength).toBeGreaterThan(3_000_000);
    await stub.appendEvents(session, [user("q"), request("r", "c"), result("t", "c", large), agent("a")]);
    await evictDurableObject(stub);
    const events = await stub.loadEvents(session);
    expect(events).toHaveLength(4);
    expect(events[2]?.content === large).toBe(true);
    expect(seqs(await stub.loadEvents(session, { maxBytes: 1_000_000 }))).toEqual([3]);
    for (let i = 0; i < 5; i++) await stub.appendEvents(session, [result(`t${i}`, `c${i}`, large)]);
    expect(seqs(await stub.loadEvents(session))).toEqual([7, 8]);
    const rows = await runInDurableObject(stub, (_, { storage }) =>
      storage.sql
        .exec("SELECT max(octet_length(text)) AS bytes, count(*) AS n FROM cf_agents_long_text")
        .one(),
    );
    expect(rows.n).toBe(18);
    expect(rows.bytes).toBeLessThan(2_000_000);
    await stub.deleteSession(session);
    const left = await runInDurableObject(stub, (_, { storage }) =>
      storage.sql.exec("SELECT count(*) AS n FROM cf_agents_long_text").one(),
    );
    expect(left).toEqual({ n: 0 });
  });

  it("M24 AGENT-1 destroying the actor removes all of its data", async () => {
    const name = crypto.randomUUID();
    const stub = await freshAgent(name);
    const session = await stub.createSession();
    await stub.appendEvents(session, [user("q"), result("t", "c", "x".repeat(3_000_000))]);
    await stub.loadEvents(session, { maxBytes: 1 });
    const left = await runInDurableObject(stub, async (instance, { storage }) => {
      await instance.destroy();
      return storage.sql.exec("SELECT name FROM sqlite_master WHERE name LIKE 'cf_agents_%'").toArray();
    });
    expect(left).toEqual([]);
    // The destroyed object is evicted. The next object of its name starts empty.
    const sessions = async () => (await freshAgent(name)).listSessions();
    await expect.poll(() => sessions().catch(String)).toEqual({ items: [] });
  });

  it.each(["Agent", "Coordinator", "Trigger"] as const)(
    "M1 AGENT-4 the class %s refuses every session method, and has no session tables",
    async (name) => {
      // SAFETY: the classes of the application are among the exports, and each is a session agent.
      const actors = exports as unknown as Record<string, DurableObjectNamespace<PlainSessionAgent>>;
      const namespace = actors[name];
      if (namespace === undefined) throw new Error(`The Worker does not export ${name}.`);
      const stub = await getAgentByName(namespace, `test:${crypto.randomUUID()}`);
      const calls: (() => Promise<unknown>)[] = [
        () => stub.createSession(),
        () => stub.getSession("s"),
        () => stub.listSessions(),
        () => stub.deleteSession("s"),
        () => stub.loadEvents("s"),
        () => stub.appendEvents("s", users(1)),
        () => stub.deleteEvents("s", ["e0"]),
        () => runInDurableObject(stub, async (actor) => actor.buildWorkingContext("s")),
        () =>
          runInDurableObject(stub, (actor) =>
            actor.compactSession("s", { tokenBudget: 1_000, summarise: extractiveSummariser() }),
          ),
        () =>
          runInDurableObject(stub, async (actor) =>
            actor.persistWorkingContext("s", buildWorkingContext([])),
          ),
      ];
      for (const call of calls) {
        const failure = await failureOf(call);
        expect(failure).toMatchObject({ code: "FORBIDDEN" });
        expect(String(failure)).toMatch(`The ${name.toLowerCase()} "test:`);
        expect(String(failure)).toContain(
          "has no sessions. Call a conversation, or your own subclass of SessionAgent.",
        );
      }
      const tables = await runInDurableObject(stub, (_, { storage }) =>
        storage.sql
          .exec("SELECT name FROM sqlite_master WHERE name IN ('cf_agents_sessions', 'cf_agents_events')")
          .toArray(),
      );
      expect(tables).toEqual([]);
    },
  );

  it("AGENT-3 sub-agents are refused, and no client can write the SDK's state", async () => {
    const stub = await freshAgent();
    const inner = await stub.fetch("http://agent/sub/plain-session-agent/child");
    expect(inner.status).toBe(404);
    const answer = await stub.fetch("http://agent/", { headers: { upgrade: "websocket" } });
    const socket = answer.webSocket;
    expect(socket).not.toBeNull();
    const refused = new Promise<unknown>((resolve) => {
      socket?.addEventListener("message", ({ data }) => {
        const frame: unknown = JSON.parse(String(data));
        if (JSON.stringify(frame).includes("cf_agent_state_error")) resolve(frame);
      });
    });
    socket?.accept();
    socket?.send(JSON.stringify({ type: "cf_agent_state", state: { owned: true } }));
    expect(await refused).toMatchObject({ error: expect.stringContaining("readonly") });
    expect(await runInDurableObject(stub, ({ state }) => state)).toBeUndefined();
    socket?.close();
  });
});

describe("the sessions of a conversation", () => {
  it("M2 SESSIONS-4 one per agent, in pages; only turns write them", async () => {
    const { id } = await createConversation(await createAgent({ identity: { systemPrompt: "You help." } }));
    const stub = exports.Conversation.getByName(`test:${id}`);
    await runInDurableObject(stub, (_, { storage }) => {
      const keys = new DurableKeyValue(storage);
      const record = keys.get<{ agents: { id: string; chain: unknown }[] }>("conversation");
      const agents = ["b", "c", "a"].map((name) => ({ ...record?.agents[0], id: name }));
      keys.put("conversation", { ...record, agents });
    });
    await evictDurableObject(stub);
    const idsOf = async (options?: PageOptions) => {
      const { items, nextCursor } = await stub.listSessions(options);
      return { ids: items.map((session) => session.id), cursor: nextCursor };
    };
    expect(await idsOf()).toEqual({ ids: ["c", "b", "a"], cursor: undefined });
    for (const order of ["asc", "desc"] as const) {
      const first = await idsOf({ order, limit: 2 });
      const second = await idsOf({ order, limit: 2, cursor: first.cursor ?? "" });
      const all = order === "asc" ? ["a", "b", "c"] : ["c", "b", "a"];
      expect([first.ids, second]).toEqual([all.slice(0, 2), { ids: all.slice(2), cursor: undefined }]);
    }
    expect(await stub.getSession("b")).toMatchObject({ id: "b", agent_id: "b", metadata: null });
    const refused = await runInDurableObject(stub, (instance) =>
      Promise.allSettled([
        instance.createSession(),
        instance.appendEvents("a", [user("u")]),
        instance.deleteEvents("a", ["u"]),
        instance.deleteSession("a"),
        instance.compactSession("a", { tokenBudget: 1, summarise: extractiveSummariser() }),
      ]),
    );
    for (const outcome of refused) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "FORBIDDEN" } });
    }
  });
});

describe("the cost of sessions", () => {
  it("M2 SESSIONS-4 a page of sessions reads its own rows and one more, in both orders", async () => {
    await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) => {
      const counter = new CostCounter();
      const db = new DurableSqlDatabase(countingStorage(storage, counter));
      const sessions = new SqlSessionTable(db);
      const events = new EventStore(db, new LongText(db));
      const store = new SessionStore({ db, sessions, events, clock: systemClock, ids: systemIds });
      sessions.createTable();
      for (let n = 0; n < 1_000; n++) store.create("agent");
      for (const order of ["asc", "desc"] as const) {
        for (let cursor: string | undefined = undefined, page = 0; page < 3; page++) {
          counter.reset();
          ({ nextCursor: cursor } = store.list({
            order,
            limit: 200,
            ...(cursor === undefined ? {} : { cursor }),
          }));
          expect(counter.cost).toEqual({ statements: 1, rowsRead: 201, rowsWritten: 0 });
        }
      }
    });
  });

  it("EVENTS-1 SESSIONS-3 one event is one row, and one in the index of ids if there is one; a batch is one statement, and one more for the session's counter", async () => {
    await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) => {
      const counter = new CostCounter();
      const db = new DurableSqlDatabase(countingStorage(storage, counter));
      const events = new EventStore(db, new LongText(db));
      const sessions = new SqlSessionTable(db);
      const store = new SessionStore({ db, sessions, events, clock: systemClock, ids: systemIds });
      const costOf = (work: () => unknown) => {
        counter.reset();
        work();
        return counter.cost;
      };
      expect(costOf(() => events.createTable())).toMatchObject({ statements: 1, rowsWritten: 2 });
      expect(costOf(() => sessions.createTable())).toMatchObject({ statements: 1, rowsWritten: 2 });
      expect(costOf(() => events.createTable())).toMatchObject({ statements: 1, rowsWritten: 0 });
      const session = store.create("agent");
      expect(costOf(() => events.append("held elsewhere", 0, users(1)))).toMatchObject({
        statements: 1,
        rowsWritten: 1,
      });
      expect(costOf(() => events.append("held elsewhere", 1, users(100)))).toMatchObject({
        statements: 1,
        rowsWritten: 100,
      });
      events.indexIds();
      expect(costOf(() => store.append(session, users(1)))).toMatchObject({ statements: 2, rowsWritten: 3 });
      const batch = users(301).slice(1);
      expect(costOf(() => store.append(session, batch))).toMatchObject({ statements: 2, rowsWritten: 601 });
      const again = costOf(() => store.append(session, batch));
      expect(again).toMatchObject({ statements: 3, rowsWritten: 2 });
      expect(again.rowsRead).toBeLessThanOrEqual(2_000);
      expect(costOf(() => store.load(session))).toEqual({ statements: 1, rowsWritten: 0, rowsRead: 50 });
      expect(costOf(() => store.load(session, { limit: 5, tail: false }))).toEqual({
        statements: 1,
        rowsWritten: 0,
        rowsRead: 5,
      });
    });
  });

  it("COMPACT-3 EVENTS-4 a compaction is one event: its row, its place in two indexes, and the session's", async () => {
    await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), async (_, { storage }) => {
      const counter = new CostCounter();
      const db = new DurableSqlDatabase(countingStorage(storage, counter));
      const events = new EventStore(db, new LongText(db));
      const sessions = new SqlSessionTable(db);
      const store = new SessionStore({ db, sessions, events, clock: systemClock, ids: systemIds });
      sessions.createTable();
      events.createTable();
      events.indexIds();
      const id = store.create("agent");
      const more = (from: number) =>
        store.append(
          id,
          Array.from({ length: 500 }, (_value, n) => turnOfEvents(from + n, "q", [], "a")).flat(),
        );
      const compact = async () => {
        counter.reset();
        const options = { tokenBudget: 1_000, maxInputTokens: 1e6, summarise: async () => "short" };
        expect(await compactSession(store, id, options)).not.toBeNull();
        return counter.cost;
      };
      more(0);
      const { rowsWritten: withIndex } = await compact();
      more(500);
      const second = await compact();
      expect(withIndex).toBeLessThanOrEqual(7);
      expect(second).toMatchObject({ rowsWritten: 4 });
      expect(second.statements).toBeLessThanOrEqual(10);
      more(1_000);
      counter.reset();
      const window = store.loadWindow(id, { limit: 10 });
      expect(window.events[0]?.content).toMatch(/short$/);
      expect(counter.cost).toMatchObject({ statements: 1, rowsWritten: 0 });
      expect(counter.cost.rowsRead).toBeLessThanOrEqual(30);
    });
  });

  it("EVENTS-6 SESSIONS-3 appending to and deleting from a session of 5 000 events read the named events only", async () => {
    await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) => {
      const counter = new CostCounter();
      const db = new DurableSqlDatabase(countingStorage(storage, counter));
      const { sessions, events } = openSessionTables({
        database: db,
        keyValue: new DurableKeyValue(storage),
      });
      const store = new SessionStore({ db, sessions, events, clock: systemClock, ids: systemIds });
      const costOf = (work: () => unknown) => {
        counter.reset();
        work();
        return counter.cost;
      };
      const [one, two] = [store.create("agent"), store.create("agent")];
      for (const session of [one, two]) store.append(session, users(5_000));
      const added = costOf(() => store.append(one, [user("new")]));
      expect(added).toMatchObject({ statements: 2, rowsWritten: 3 });
      expect(added.rowsRead).toBeLessThanOrEqual(5);
      const gone = costOf(() => store.deleteEvents(one, ["e2500", "never there"]));
      expect(gone).toMatchObject({ statements: 1, rowsWritten: 1 });
      expect(gone.rowsRead).toBeLessThanOrEqual(10);
      const long = (id: string) => result(id, "c", "x".repeat(4_000_000));
      for (const session of [one, two]) store.append(session, [long("a"), long("b"), long("c")]);
      const pieces = costOf(() => store.deleteEvents(one, ["b"]));
      expect(pieces).toMatchObject({ statements: 2, rowsWritten: 1 + 3 });
      expect(pieces.rowsRead).toBeLessThanOrEqual(20);
      expect(store.load(two, { limit: 10_000, maxBytes: 2 ** 30 })).toHaveLength(5_003);
    });
  });

  it("EVENTS-3 a bounded window reads no row beyond the first row that exceeds it", async () => {
    await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) => {
      const counter = new CostCounter();
      const db = new DurableSqlDatabase(countingStorage(storage, counter));
      const events = new EventStore(db, new LongText(db));
      events.createTable();
      events.append(
        "s",
        0,
        users(40).map((event) => ({ ...event, content: "x".repeat(100_000) })),
      );
      counter.reset();
      expect(seqs(events.load("s", { maxBytes: 350_000 }))).toEqual([37, 38, 39]);
      expect(counter.cost.rowsRead).toBeLessThanOrEqual(5);
    });
  });
});
