/** The log of a tenant on workerd: its events and its search over HTTP, after outages, erasures and deletions, and its cost. */
import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { ulid } from "ulid";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createClient } from "../../src/client/http.ts";
import type { CoordinatorApi } from "../../src/protocol/coordinator-api.ts";
import type { EventLogApi, FoundMessage, LoggedEvent } from "../../src/protocol/event-log.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { ReplyScript } from "../support/provider-script.ts";
import { expectErased, storageOf } from "./everything.ts";
import { openGate, Play } from "./provider.ts";
import { ended, journal, post, call as runs, start, task, wakeRun } from "./run-helpers.ts";
import {
  ADA,
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  skipInvariants,
  type TestConversation,
} from "./world.ts";

const person = (subject: string, ...roles: Principal["roles"]): Principal => ({
  subject,
  tenant: "test",
  roles,
});
const MEMBER = person("ada", "member");
const BEN = person("ben", "member");
const OLGA = person("olga", "operator");
const ELSEWHERE = { ...OLGA, tenant: "elsewhere" };
let agent: string;

beforeAll(async () => {
  agent = await createAgent("test/handy");
});

afterEach(async () => {
  vi.useRealTimers();
  await checkInvariants();
});

// SAFETY: the configuration of the tests gives the class its storage.
const log = () => (exports.EventLog as unknown as DurableObjectNamespace).getByName("test:events");

/** Does something while the log cannot write. */
async function withoutLog<Value>(body: () => Promise<Value>): Promise<Value> {
  const rename = (from: string, to: string) =>
    runInDurableObject(
      log(),
      (_, { storage }) => void storage.sql.exec(`ALTER TABLE ${from} RENAME TO ${to}`),
    );
  await rename("labels", "labels_away");
  try {
    return await body();
  } finally {
    await rename("labels_away", "labels");
  }
}

async function read<Answer>(path: string, principal = OLGA): Promise<Answer> {
  const response = await request(path, {}, principal);
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json();
}

const list = (query: string, principal = OLGA) =>
  read<{ events: LoggedEvent[]; nextCursor?: string }>(`/api/events?${query}`, principal);
const typesOf = async (query: string) => (await list(query)).events.map(({ type }) => type);

/** Returns the answers that a search finds. */
async function search(q: string, principal = OLGA, more = ""): Promise<FoundMessage[]> {
  const path = `/api/search?q=${encodeURIComponent(q)}${more}`;
  const { messages } = await read<{ messages: FoundMessage[] }>(path, principal);
  // The message of a person has the script of the answer.
  return messages.filter(({ role }) => role === "agent");
}

/** Plays a turn to its end. Returns its id. */
async function play(
  conversation: TestConversation,
  replies: ReplyScript[] = [[{ text: "Yes." }]],
  says = "",
): Promise<string> {
  const { turnId } = await conversation.play({ replies, ...(says !== "" && { says }) });
  await conversation.ended(turnId);
  return turnId;
}

/** Waits until the log has all entries of a conversation. */
async function published(conversation: TestConversation): Promise<void> {
  const entries = (await conversation.journal()).length;
  await expect
    .poll(async () => (await list(`conversation=${conversation.id}&limit=200`)).events.length)
    .toBe(entries);
}

/** A word that no other text has. */
const rare = () => `word${crypto.randomUUID().replaceAll("-", "")}`;

describe("A70 E23 the events of a tenant", () => {
  test("A70 LOGGED-1 equal the journals of its conversations, and filter by the names of the designs too", async () => {
    const conversation = await createConversation(agent);
    await play(conversation, [[{ call: "double", input: { n: 4 } }], [{ text: "It is 8." }]]);
    await play(conversation);
    await published(conversation);
    const of = `conversation=${conversation.id}&limit=200`;
    const { events } = await list(of);
    const journal = await conversation.journal();
    expect(
      events.map(({ seq: _seq, conversationId: _id, projectId: _p, agentId: _a, entry, ...rest }) => ({
        seq: entry,
        ...rest,
      })),
    ).toEqual(journal);
    expect(events.filter(({ turnId }) => turnId !== undefined).every((one) => one.agentId === agent)).toBe(
      true,
    );
    for (const name of ["tool.requested", "tool_invoked", "conversation.tool.requested", "DISPATCH_TASK"])
      expect(await typesOf(`${of}&type=${name}`), name).toEqual(["tool.requested"]);
    expect(await typesOf(`${of}&type=turn.started,turn.completed`)).toEqual(
      journal.map(({ type }) => type).filter((type) => /^turn\.(?:started|completed)$/.test(type)),
    );
    const second = events.findLast(({ type }) => type === "turn.started");
    const ofSecond = events.filter(({ correlationId }) => correlationId === second?.correlationId);
    expect((await list(`correlation=${second?.correlationId}&agent=${agent}`)).events).toEqual(ofSecond);
    expect((await list(`${of}&after=${second?.seq}`)).events).toEqual(
      events.filter(({ seq }) => seq > (second?.seq ?? 0)),
    );
    expect((await list(`${of}&since=${second?.time}`)).events[0]?.seq).toBeLessThanOrEqual(second?.seq ?? 0);
    expect((await list(`${of}&until=${events[0]?.time}`)).events).toEqual([]);
    const paged: LoggedEvent[] = [];
    for (let cursor = ""; ; ) {
      const page = await list(`conversation=${conversation.id}&limit=4&order=desc${cursor}`);
      paged.push(...page.events);
      if (page.nextCursor === undefined) break;
      cursor = `&cursor=${page.nextCursor}`;
    }
    expect(paged).toEqual(events.toReversed());
    expect((await request(`/api/events?${of}&type=nonsense`, {}, OLGA)).status).toBe(422);
    expect((await request(`/api/events?${of}&cursor=x`, {}, OLGA)).status).toBe(422);
    expect((await request(`/api/events?${of}`, {}, MEMBER)).status).toBe(403);
    expect((await list(of, ELSEWHERE)).events).toEqual([]);
  });

  test("E23 LOGFOLLOW-1 are followed over SSE, each once and in order, and after the last number", async () => {
    const conversation = await createConversation(agent);
    await play(conversation);
    await published(conversation);
    const follow = async (more: Record<string, string>) => {
      const headers = { accept: "text/event-stream", ...more };
      const response = await request(`/api/events?conversation=${conversation.id}`, { headers }, OLGA);
      expect(response.status).toBe(200);
      const reader = (response.body ?? expect.fail("no body"))
        // SAFETY: the platform takes buffer sources of all kinds here; bytes are one.
        .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
        .pipeThrough(new EventSourceParserStream())
        .getReader();
      return {
        next: async () => {
          const { value } = await reader.read();
          const event = JSON.parse(value?.data ?? "") as LoggedEvent;
          expect(value?.id).toBe(String(event.seq));
          return event;
        },
        cancel: () => reader.cancel(),
      };
    };
    const whole = await follow({});
    const seen: LoggedEvent[] = [];
    const stored = (await list(`conversation=${conversation.id}&limit=200`)).events;
    while (seen.length < stored.length) seen.push(await whole.next());
    expect(seen).toEqual(stored);
    await play(conversation);
    await published(conversation);
    const all = (await list(`conversation=${conversation.id}&limit=200`)).events;
    while (seen.length < all.length) seen.push(await whole.next());
    expect(seen).toEqual(all);
    await whole.cancel();
    const resumed = await follow({ "last-event-id": String(stored.at(-1)?.seq) });
    expect(await resumed.next()).toEqual(all[stored.length]);
    await resumed.cancel();
    const client = createClient({
      baseUrl: "http://dramatis.test",
      fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init, OLGA),
    });
    for await (const event of client.events.follow({ conversation: conversation.id })) {
      expect(event).toEqual(all[0]);
      break;
    }
    expect(
      (await client.events.list({ conversation: conversation.id, type: "turn.started" })).events,
    ).toEqual(all.filter(({ type }) => type === "turn.started"));
  });

  test("E29 LOGGED-3 has the codes of failed turns and failed calls, and the timeline of a failed turn by its correlation, after the conversation has ended", async () => {
    const conversation = await createConversation(agent);
    await play(conversation);
    await play(conversation, [[{ call: "double", input: { n: "x" } }], [{ text: "No." }]]);
    await play(conversation, [{ status: 400, message: "No." }]);
    expect((await request(`${conversation.path}/complete`, { method: "POST" })).status).toBe(200);
    await published(conversation);
    const [failed] = (await list(`conversation=${conversation.id}&type=turn.failed`)).events;
    expect(failed).toMatchObject({ code: "MODEL_FAILED" });
    const calls = (await list(`conversation=${conversation.id}&type=tool.failed`)).events;
    expect(calls).toMatchObject([{ code: "INVALID_INPUT" }]);
    const entries = (await list(`conversation=${conversation.id}&limit=200`)).events;
    expect(
      entries.filter(({ type }) => type === "turn.completed").some(({ code }) => code !== undefined),
    ).toBe(false);
    expect(JSON.stringify(failed)).not.toContain("No.");
    const timeline = await typesOf(`correlation=${failed?.correlationId}`);
    expect(timeline[0]).toBe("turn.started");
    expect(timeline).toContain("turn.failed");
  });
});

describe("A70 the events of runs", () => {
  const ECHO = { ref: "start", task: "flow/echo", inputMapping: { value: "input.key" } };
  const FAILS = task("start", "pure", {}, { fails: "true" });
  const eventsOf = async (id: string) => (await list(`run=${id}&limit=200`)).events;

  /** Waits until the log has all entries of a run. Returns them. */
  async function publishedRun(id: string, timeout = 20_000): Promise<LoggedEvent[]> {
    const { length } = await journal(id);
    await expect.poll(async () => (await eventsOf(id)).length, { timeout }).toBe(length);
    return eventsOf(id);
  }

  test("A70 RUNLOG-1 RUNLOG-3 NAMES-2 equal the journals of runs and sub-runs, filter by all members, and are for operators", async () => {
    const inner = await post({ nodes: [FAILS] });
    const { id } = await start({
      nodes: [ECHO, { ref: "below", workflow: inner, inputMapping: { key: "input.key" } }],
      transitions: [{ from: "start", to: "below" }],
    });
    expect((await ended(id)).status).toBe("failed");
    const events = await publishedRun(id);
    expect(
      events.map(({ seq: _seq, runId, projectId, entry, correlationId, code, ...rest }) => {
        expect([runId, projectId, correlationId]).toEqual([id, "default", id]);
        const { error } = Object(rest.data) as { error?: { code?: string } };
        expect(code).toBe(error?.code);
        return { seq: entry, ...rest };
      }),
    ).toEqual(await journal(id));
    const seqs = events.map(({ seq }) => seq);
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));

    const ofTree = (await list(`correlation=${id}&limit=200`)).events;
    const child = ofTree.find(({ runId }) => runId !== id)?.runId ?? expect.fail("no sub-run");
    const below = await publishedRun(child);
    expect(below.map(({ entry }) => entry)).toEqual((await journal(child)).map(({ seq }) => seq));
    expect(below.every(({ parentRunId }) => parentRunId === id)).toBe(true);
    const failed = [events, below].map((all) => all.find(({ type }) => type === "workflow.failed"));
    for (const name of ["workflow.failed", "workflow_failed"])
      expect((await list(`type=${name}&correlation=${id}&order=desc`)).events).toEqual(
        failed.toSorted((a, b) => (b?.seq ?? 0) - (a?.seq ?? 0)),
      );
    // A failed tool of a conversation is no failed workflow of the log.
    const conversation = await createConversation(agent);
    await play(conversation, [[{ call: "fails", input: {} }], [{ text: "No." }]]);
    await published(conversation);
    expect((await list("type=workflow.failed&limit=200")).events.map(({ runId }) => runId)).not.toContain(
      undefined,
    );
    const ofConversation = `conversation=${conversation.id}&type=`;
    expect(await typesOf(`${ofConversation}workflow.failed`)).toEqual(
      await typesOf(`${ofConversation}tool.failed`),
    );
    expect(await typesOf(`${ofConversation}token.created`)).toEqual([]);
    const [first, second] = events;
    expect((await list(`run=${id}&after=${first?.seq}&limit=1`)).events).toEqual([second]);
    expect((await list(`run=${id}&until=${first?.time}`)).events).toEqual([]);
    expect((await list(`run=${id}&since=${first?.time}&type=workflow.started`)).events).toEqual([first]);
    expect((await list(`run=${id}&conversation=${conversation.id}`)).events).toEqual([]);
    for (const principal of [MEMBER, BEN])
      expect((await request(`/api/events?run=${id}`, {}, principal)).status).toBe(403);
    expect((await list(`run=${id}`, ELSEWHERE)).events).toEqual([]);
  });

  test("A70 EVLOG-9 of a run in a jurisdiction are in its log", async () => {
    const body = { workflow: await post({ nodes: [ECHO] }), input: { key: "a" }, jurisdiction: "eu" };
    const { id } = await runs("POST", "", 201, body);
    await ended(id);
    expect((await publishedRun(id)).at(-1)?.type).toBe("workflow.completed");
    expect(await typesOf(`correlation=${id}`)).toEqual([]);
    expect((await list(`correlation=${id}&jurisdiction=eu`)).events).toEqual(await eventsOf(id));
  });

  test("A70 RUNLOG-2 appear while a run waits for a person", async () => {
    const action = { kind: "human.approve", prompt: "Go on?" };
    const body = {
      id: "go_on",
      inputSchema: { type: "object", properties: {} },
      steps: [{ ref: "ask", action }],
    };
    const made = await request("/api/libraries/flows/tasks", { method: "POST", body: JSON.stringify(body) });
    expect(made.status, await made.clone().text()).toBe(201);
    const { id } = await start({ nodes: [{ ref: "start", task: "flows/go_on", inputMapping: {} }] });
    await expect.poll(async () => (await runs("GET", `/${id}`, 200)).gates).toHaveLength(1);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 20_000 });
    await wakeRun(id);
    const events = await publishedRun(id);
    expect(events.map(({ type }) => type)).toContain("gate.opened");
    await runs("POST", `/${id}/cancel`, 200);
    expect((await publishedRun(id)).slice(0, events.length)).toEqual(events);
  });

  /** Two tasks beside each other, which wait at their gates. */
  const LONG = {
    nodes: [
      { ref: "start" },
      ...["short", "long"].map((name) => task(name, "once", {}, { wait: `'${name}'` })),
    ],
    transitions: ["short", "long"].map((to) => ({ from: "start", to })),
  };

  /** Lets the alarm of a run fire after so many seconds. */
  async function wakeIn(seconds: number, id: string): Promise<void> {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + seconds * 1_000 });
    await wakeRun(id);
  }

  const committed = (id: string, type: string, node: string) =>
    expect
      .poll(async () => (await journal(id)).some((entry) => entry.type === type && entry.node === node))
      .toBe(true);
  const isOpen = async (id: string) => (await runs("GET", `/${id}`, 200)).endedAt === undefined;
  const seqsOf = (events: readonly { entry: number; type: string }[]) =>
    events.map(({ entry, type }) => [entry, type]);
  const expectEqual = async (id: string, timeout?: number) =>
    expect(seqsOf(await publishedRun(id, timeout))).toEqual(
      seqsOf((await journal(id)).map(({ seq: entry, type }) => ({ entry, type }))),
    );

  test("A70 RECORDS-1 RUNLOG-2 are caught up after an outage of the log and a crash, and runs do not wait for the log", async () => {
    const before = await start({ nodes: [ECHO] });
    await ended(before.id);
    await publishedRun(before.id);
    const id = await withoutLog(async () => {
      const run = await start({ nodes: [ECHO] });
      expect((await ended(run.id)).status).toBe("completed");
      await wakeRun(run.id);
      await crash();
      return run.id;
    });
    expect(await eventsOf(id)).toEqual([]);
    await wakeIn(60, id);
    await expectEqual(id);
  });

  test("A70 RUNLOG-2 RECORDS-4 appear at the wake-ups of a long task, each once, while it runs", async () => {
    const { id, key } = await start(LONG);
    await committed(id, "task.dispatched", "long");
    await wakeIn(2, id);
    // The wake-up of the copies comes after 15 seconds.
    await expectEqual(id, 8_000);
    await wakeIn(60, id);
    await openGate(key, "short");
    await committed(id, "task.completed", "short");
    await wakeIn(120, id);
    await expectEqual(id);
    expect(await isOpen(id)).toBe(true);
    await openGate(key, "long");
    expect((await ended(id)).status).toBe("completed");
    await expectEqual(id);
  });

  test("A70 RECORDS-1 RUNLOG-2 of a long task are caught up at its wake-ups after an outage of the log, while it runs", async () => {
    const { id, key } = await start(LONG);
    await committed(id, "task.dispatched", "long");
    await wakeIn(2, id);
    await expectEqual(id);
    const before = await eventsOf(id);
    await withoutLog(async () => {
      await openGate(key, "short");
      await committed(id, "task.completed", "short");
      for (const seconds of [20, 60]) await wakeIn(seconds, id);
    });
    expect(await eventsOf(id)).toEqual(before);
    await wakeIn(120, id);
    await expectEqual(id);
    expect(await isOpen(id)).toBe(true);
    await runs("POST", `/${id}/cancel`, 200);
    await expectEqual(id);
  });

  test("A70 RECORDS-1 RUNLOG-2 of a node that waits for an agent appear while the agent works, also after a crash", async () => {
    const answering = await createAgent({
      identity: { systemPrompt: "You check.", modelProfileId: "test/scripted" },
    });
    const script = new Play({ replies: [[{ gate: "answer" }, { text: "It is right." }]] });
    const node = { ref: "start", agent: answering, inputMapping: { message: "input.items[0]" } };
    const { id } = await start({ nodes: [node] }, { items: [script.content] });
    await script.reached("answer");
    await crash();
    await wakeIn(20, id);
    await expectEqual(id);
    expect(await isOpen(id)).toBe(true);
    await script.open("answer");
    await runs("POST", `/${id}/cancel`, 200);
    await wakeIn(20, id);
    await expectEqual(id);
  });
});

describe("A70 the search of messages", () => {
  test("A70 EVLOG-8 finds the messages of the caller's conversations, and all of the tenant for operators", async () => {
    const word = rare();
    const q = `REFUND ${word}`;
    const conversation = await createConversation(agent);
    const turnId = await play(conversation, [[{ text: `Your réfund is ${word}.` }]]);
    await expect.poll(() => search(word)).toHaveLength(1);
    const [found] = await search(q);
    const message = (await conversation.messages()).at(-1);
    expect(found).toEqual({
      ...{ conversationId: conversation.id, turnId, messageId: message?.id, agentId: agent, userId: "ada" },
      ...{ role: "agent", time: message?.createdAt, snippet: `Your réfund is ${word}.` },
      marks: [
        [5, 11],
        [15, 15 + word.length],
      ],
    });
    expect(await search(q, MEMBER)).toEqual([found]);
    expect(await search(q, BEN)).toEqual([]);
    expect(await search(word, ELSEWHERE)).toEqual([]);
    expect(await search(word, { ...MEMBER, tenant: "elsewhere" })).toEqual([]);
    const body = JSON.stringify({ type: "user", id: "ben" });
    expect((await request(`${conversation.path}/participants`, { method: "POST", body })).status).toBe(200);
    await expect.poll(() => search(q, BEN)).toEqual([found]);
    const left = await request(`${conversation.path}/participants/user/ben`, { method: "DELETE" });
    expect(left.status).toBe(204);
    await expect.poll(() => search(q, BEN)).toEqual([]);
    expect(await search(q, OLGA, `&agent=${agent}&user=ada&since=${message?.createdAt}`)).toEqual([found]);
    expect(await search(q, OLGA, `&until=${message?.createdAt}`)).toEqual([]);
    expect(await search(q, OLGA, "&user=ben")).toEqual([]);
    expect(await search(q, OLGA, "&role=agent")).toEqual([found]);
    expect(await search(q, OLGA, "&role=user")).toEqual([]);
    for (const hostile of ['"', "a AND (", "NEAR(", "*", "\0", "'; DROP TABLE batches"])
      expect(await search(hostile, BEN), hostile).toEqual([]);
    const client = createClient({
      baseUrl: "http://dramatis.test",
      fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init, MEMBER),
    });
    expect((await client.messages.search({ q, limit: 1 })).messages).toEqual([found]);
  });

  test("A70 names the conversations of the messages, and answers without titles during an outage of D1", async () => {
    const word = rare();
    const [named, unnamed] = [await createConversation(agent), await createConversation(agent)];
    for (const conversation of [named, unnamed])
      for (let n = 0; n < 2; n++) await play(conversation, [[{ text: word }]]);
    const body = JSON.stringify({ title: "The zebra" });
    expect((await request(named.path, { method: "PATCH", body })).status).toBe(200);
    await expect.poll(() => search(word)).toHaveLength(4);
    const titles = async () =>
      (await search(word)).map(({ conversationId, title }) => [conversationId, title]).toSorted();
    const expected = [named, named, unnamed, unnamed].map(({ id }) => [
      id,
      id === named.id ? "The zebra" : undefined,
    ]);
    await expect.poll(titles).toEqual(expected.toSorted());
    const all = vi.spyOn(Object.getPrototypeOf(env.DB.prepare("SELECT 1")), "all");
    all.mockRejectedValue(new Error("D1 is away."));
    try {
      expect(await search(word)).toHaveLength(4);
      expect((await search(word)).filter(({ title }) => title !== undefined)).toEqual([]);
    } finally {
      all.mockRestore();
    }
  });

  test("A70 LOGGED-1 RECORDS-1 is caught up after an outage of the log and a crash, and turns do not wait for the log", async () => {
    const [first, missed] = [rare(), rare()];
    const conversation = await createConversation(agent);
    await play(conversation, [[{ text: first }]]);
    await expect.poll(() => search(first)).toHaveLength(1);
    await withoutLog(async () => {
      await play(conversation, [[{ text: missed }]]);
      await conversation.wake();
      await crash();
    });
    expect(await search(missed)).toEqual([]);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    expect(await conversation.wake(), "a wake-up is armed").toBe(true);
    await expect.poll(() => search(missed)).toHaveLength(1);
    await published(conversation);
  });

  test("A70 LOGGED-2 EVLOG-3 H6 loses erased texts and data, and all of a deleted conversation", async () => {
    const [secret, kept] = [rare(), rare()];
    const conversation = await createConversation(agent);
    const turnId = await play(conversation, [
      [{ call: "double", input: { n: secret } }],
      [{ text: `It is ${secret}.` }],
    ]);
    await play(conversation, [[{ text: kept }]]);
    await expect.poll(() => search(kept)).toHaveLength(1);
    expect(await storageOf(log())).toContain(secret);
    const { moves } = await conversation.turn(turnId);
    const calls = moves.flatMap(({ toolCall, id }) => (toolCall === undefined ? [] : [id]));
    const said = (await conversation.messages()).filter((message) => message.turnId === turnId);
    for (const id of [...calls, ...said.map((message) => message.id)])
      expect((await request(`${conversation.path}/events/${id}`, { method: "DELETE" })).status).toBe(204);
    await expectErased(log(), secret);
    expect(await search(secret)).toEqual([]);
    expect(await search(kept)).toHaveLength(1);
    await published(conversation);
    const journal = await conversation.journal();
    const { events } = await list(`conversation=${conversation.id}&limit=200`);
    expect(events.map(({ data }) => data)).toEqual(journal.map(({ data }) => data));
    skipInvariants(conversation);
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await expectErased(log(), conversation.id);
    await expectErased(log(), kept);
    expect(await search(kept)).toEqual([]);
  });

  test("A70 ACCESS-1 EVLOG-8 refuses a principal without a subject or with roles that are no list, over RPC", async () => {
    const invalid = [
      { tenant: "test", roles: ["member"] },
      { subject: "", tenant: "test", roles: ["operator"] },
      { subject: "ada", tenant: "test", roles: "operator" },
      { subject: ["ada"], tenant: "test", roles: ["member"] },
      null,
    ];
    for (const principal of invalid as Principal[]) {
      const answers = await runInDurableObject(log(), async (instance) => {
        const target = instance as unknown as EventLogApi;
        return [
          await target.search(principal, { q: "yes" }),
          await target.events(principal, { limit: 1, order: "asc" }),
          await target.follow(principal, {}),
        ].map((answer) => (answer.ok ? answer : answer.error.code));
      });
      expect(answers).toEqual(["INVALID_INPUT", "INVALID_INPUT", "INVALID_INPUT"]);
    }
  });

  test("A70 EVLOG-9 conversations of a jurisdiction have a log of their own", async () => {
    const word = rare();
    const id = `eu${Date.now()}_eu`;
    const created = await request("/api/agents", {
      method: "POST",
      body: JSON.stringify({ id, persona: "test/handy", jurisdiction: "eu" }),
    });
    expect(created.status).toBe(201);
    const conversation = await createConversation(id);
    await play(conversation, [[{ text: word }]]);
    await expect.poll(() => search(word, OLGA, "&jurisdiction=eu")).toHaveLength(1);
    expect(await search(word, OLGA, `&agent=${id}`)).toHaveLength(1);
    expect(await search(word)).toEqual([]);
    await published(conversation);
    expect(await storageOf(log())).not.toContain(word);
  });
});

const JOBS = "SELECT id FROM cf_agents_jobs";

/** Counts the statements of an actor and the rows that they write, from now on. */
function counted({ sql }: DurableObjectStorage) {
  const exec = sql.exec.bind(sql);
  const cursors: { rowsWritten: number }[] = [];
  const spy = vi.spyOn(sql, "exec").mockImplementation(((...given: Parameters<typeof sql.exec>) => {
    const cursor = exec(...given);
    if (!given[0].trim().startsWith("CREATE ") && given[0] !== JOBS) cursors.push(cursor);
    return cursor;
  }) as typeof sql.exec);
  return () => {
    spy.mockRestore();
    const rows = cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
    return { statements: cursors.length, rows };
  };
}

test("A70 EVLOG-2 H5 a run of one node costs the log 5 rows: its batch and four labels, and its actor no row", async () => {
  const workflow = await post({
    nodes: [{ ref: "start", task: "flow/echo", inputMapping: { value: "input.key" } }],
  });
  const of = async () => {
    const id = `run_${ulid()}`;
    // SAFETY: the class of the export.
    const namespace = (exports as unknown as { Coordinator: DurableObjectNamespace }).Coordinator;
    let end: ReturnType<typeof counted> | undefined;
    await runInDurableObject(log(), (_, { storage }) => {
      end = counted(storage);
    });
    const own = await runInDurableObject(namespace.getByName(`test:${id}`), async (instance, { storage }) => {
      // SAFETY: the class of the export.
      const run = instance as unknown as CoordinatorApi;
      const endOwn = counted(storage);
      unwrap(await run.start(ADA, { id, workflow, input: { key: "a" } }));
      await expect.poll(async () => (await list(`run=${id}&type=workflow.completed`)).events).toHaveLength(1);
      // The wake-ups are removed after the publication.
      await expect.poll(() => storage.sql.exec(JOBS).toArray()).toEqual([]);
      return endOwn();
    });
    return { own, log: (end ?? expect.fail("not counted"))().rows };
  };
  await of();
  const { own, log: rows } = await of();
  expect(rows).toBe(5);
  // Without the log it has 3 statements less, and the same rows.
  expect(own).toEqual({ statements: 73, rows: 14 });
});

test("A70 EVLOG-2 H5 a plain turn costs the log 6 rows: its batch, three labels, and two messages", async () => {
  const word = rare();
  const conversation = await createConversation(agent);
  await play(conversation);
  await published(conversation);
  const rows = await runInDurableObject(log(), async (instance, { storage }) => {
    // SAFETY: the class of the export.
    const target = instance as unknown as EventLogApi;
    const from = unwrap(await target.published(conversation.id)) + 1;
    const end = counted(storage);
    const ids = { turnId: "turn_1", agentId: agent, userId: "ada" };
    const texts = (role: "user" | "agent", messageId: string) => [
      { ...ids, messageId, role, at: Date.now(), text: `${word} ${"and some other words ".repeat(10)}` },
    ];
    const entry = { agentId: agent, correlationId: "corr-1", turnId: "turn_1", at: Date.now() };
    const types = ["turn.started", "message.user", "message.started", "message.completed", "turn.completed"];
    await target.publish({
      ...{ conversationId: conversation.id, projectId: "default", readers: ["ada"], from },
      newest: from + types.length - 1,
      entries: types.map((type) => ({
        ...{ ...entry, type },
        ...(type === "turn.started" ? { texts: texts("user", "msg_1") } : {}),
        ...(type === "turn.completed" ? { texts: texts("agent", "msg_2") } : {}),
      })),
    });
    return end().rows;
  });
  expect(await search(word)).toHaveLength(1);
  expect(rows).toBe(6);
  skipInvariants(conversation);
  expect((await request(conversation.path, { method: "DELETE" }, ADA)).status).toBe(204);
});

// It is the last test, because it moves the clock of the log.
test("A70 LOGGED-2 loses erased texts also if it failed between two publications before the erasure", async () => {
  vi.spyOn(console, "error").mockReturnValue();
  const secret = `word${crypto.randomUUID().replaceAll("-", "")}`;
  const conversation = await createConversation(agent);
  let allowed = 0;
  const restore = await runInDurableObject(log(), (instance) => {
    const target: EventLogApi = Object.getPrototypeOf(instance);
    const { publish } = target;
    target.publish = async function (this: EventLogApi, publication) {
      if (allowed === 0) throw new Error("The log is away.");
      allowed -= 1;
      return publish.call(this, publication);
    };
    return () => {
      target.publish = publish;
    };
  });
  try {
    const turnId = await play(conversation, [[{ text: `It is ${secret}.` }]]);
    for (let n = 0; n < 20; n++) await play(conversation, [[{ text: "filler ".repeat(1_100) }]]);
    vi.useFakeTimers({ toFake: ["Date"] });
    const wake = () => {
      vi.setSystemTime(Date.now() + 3_600_000);
      return conversation.wake();
    };
    allowed = 1;
    await wake();
    await expect.poll(() => search(secret)).toHaveLength(1);
    const messages = (await conversation.messages()).filter((message) => message.turnId === turnId);
    for (const { id } of messages)
      expect((await request(`${conversation.path}/events/${id}`, { method: "DELETE" })).status).toBe(204);
    allowed = Number.POSITIVE_INFINITY;
    const entries = (await conversation.journal()).length;
    await expect
      .poll(async () => {
        await wake();
        return runInDurableObject(log(), async (instance) =>
          unwrap(await (instance as unknown as EventLogApi).published(conversation.id)),
        );
      })
      .toBe(entries);
    expect(await search(secret)).toEqual([]);
    expect(await storageOf(log())).not.toContain(secret);
  } finally {
    await restore();
    vi.restoreAllMocks();
  }
});
