/** The turns of a tenant in D1: the list over HTTP, and its rows after outages, erasures and deletions. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createClient } from "../../src/client/http.ts";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { listTurns } from "../../src/d1/turn-statements.ts";
import type { TurnFilter, TurnRecord } from "../../src/protocol/turn-records.ts";
import { listRange } from "../../src/shared/page.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { ReplyScript } from "../support/provider-script.ts";
import { rowsOfD1 } from "./everything.ts";
import {
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
const ADA = person("ada", "member");
const BEN = person("ben", "member");
const OLGA = person("olga", "operator");
let agent: string;

beforeAll(async () => {
  agent = await createAgent("test/handy");
});

afterEach(async () => {
  vi.useRealTimers();
  await checkInvariants();
});

async function list(query: string, principal = OLGA): Promise<{ turns: TurnRecord[]; nextCursor?: string }> {
  const response = await request(`/api/turns?${query}`, {}, principal);
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json();
}

const idsOf = async (query: string, principal = OLGA) =>
  (await list(query, principal)).turns.map(({ id }) => id);

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

/** Returns the numbers of stored turns and of their labels. */
async function storedTurns({ id }: TestConversation): Promise<number> {
  const row = await env.DB.prepare("SELECT COUNT(*) AS turns FROM turns WHERE conversation_id = ?")
    .bind(id)
    .first<{ turns: number }>();
  return row?.turns ?? 0;
}

describe("A70 the turns of a tenant", () => {
  test("A70 RECORDS-1 appear with their messages, tools and cost, and equal the views of their conversation", async () => {
    const conversation = await createConversation(agent);
    const turnId = await play(conversation, [
      [{ text: "I look it up. " }, { call: "double", input: { n: 4 } }],
      [{ text: "It is 8." }],
    ]);
    await expect.poll(() => idsOf(`conversation=${conversation.id}`)).toEqual([turnId]);
    const { turns } = await list(`conversation=${conversation.id}`);
    const view = await conversation.turn(turnId);
    const messages = await conversation.messages();
    expect(turns).toEqual([
      {
        ...{
          id: turnId,
          conversationId: conversation.id,
          agentId: agent,
          projectId: "default",
          userId: "ada",
        },
        ...{ status: "completed", createdAt: view.createdAt, completedAt: view.completedAt },
        ...{ correlationId: view.correlationId, usage: view.usage, cost: view.cost },
        ...{ tools: ["test/double"], targetKinds: ["code"], runIds: [] },
        messages: messages.map(({ id, role, content }) => ({ id, role, text: content })),
      },
    ]);
  });

  test("A70 are listed by agent, person, status, tool, kind of target and time, alone and together", async () => {
    const own = await createAgent("test/handy");
    const conversation = await createConversation(own);
    const plain = await play(conversation);
    const calling = await play(conversation, [[{ call: "double", input: { n: 4 } }], [{ text: "8." }]]);
    const failing = await play(conversation, [{ status: 400, message: "No." }]);
    const of = `agent=${own}`;
    await expect.poll(() => idsOf(of)).toEqual([plain, calling, failing]);
    expect(await idsOf(`${of}&status=completed`)).toEqual([plain, calling]);
    expect(await idsOf(`${of}&status=failed`)).toEqual([failing]);
    expect(await idsOf(`${of}&tool=test/double`)).toEqual([calling]);
    expect(await idsOf(`${of}&targetKind=code&user=ada&status=completed`)).toEqual([calling]);
    expect(await idsOf(`${of}&targetKind=agent`)).toEqual([]);
    expect(await idsOf(`${of}&user=ben`)).toEqual([]);
    expect(await idsOf(`${of}&order=desc`)).toEqual([failing, calling, plain]);
    const { createdAt } = await conversation.turn(calling);
    expect(await idsOf(`${of}&since=${createdAt}`)).toEqual([calling, failing]);
    expect(await idsOf(`${of}&until=${createdAt}`)).toEqual([plain]);
    expect(await idsOf(`${of}&until=${createdAt}&order=desc`)).toEqual([plain]);
    expect(await idsOf(`${of}&since=${createdAt}&order=desc&status=completed`)).toEqual([calling]);
    const client = createClient({
      baseUrl: "http://dramatis.test",
      fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init, OLGA),
    });
    const { turns } = await client.turns.list({ agent: own, tool: "test/double" });
    expect(turns.map(({ id }) => id)).toEqual([calling]);
    for (const [name, length] of Object.entries({ month: 7, day: 10 })) {
      const today = createdAt.slice(0, length);
      const earlier = new Date(Date.parse(today) - 1).toISOString().slice(0, length);
      expect(await idsOf(`${of}&since=${today}&until=${today}`), name).toEqual([plain, calling, failing]);
      expect(await idsOf(`${of}&until=${earlier}`), name).toEqual([]);
    }
    for (const name of ["since", "until"]) {
      const refused = await request(`/api/turns?${of}&${name}=yesterday`, {}, OLGA);
      expect(refused.status).toBe(422);
      expect(await refused.json()).toMatchObject({
        code: "INVALID_INPUT",
        errors: [
          {
            path: `/${name}`,
            message: expect.stringMatching(/month such as .* day such as .* time such as/),
          },
        ],
      });
    }
  });

  test("A70 are listed by failed tools, and apart if they were stopped", async () => {
    const own = await createAgent("test/handy");
    const conversation = await createConversation(own);
    const survived = await play(conversation, [[{ call: "double", input: { n: "x" } }], [{ text: "No." }]]);
    const failed = await play(conversation, [{ status: 400, message: "No." }]);
    const { turnId: stopped } = await conversation.play({ replies: [[{ gate: "open" }, { text: "Yes." }]] });
    await conversation.stop(stopped);
    await conversation.ended(stopped);
    const of = `agent=${own}`;
    await expect.poll(() => idsOf(`${of}&status=stopped`)).toEqual([stopped]);
    expect(await idsOf(`${of}&status=failed`)).toEqual([failed]);
    expect(await idsOf(`${of}&issues=tool`)).toEqual([survived]);
    expect(await idsOf(`${of}&issues=tool&status=completed`)).toEqual([survived]);
    expect(await idsOf(`${of}&issues=tool&status=failed`)).toEqual([]);
    const { turns } = await list(of);
    expect(turns.map(({ status, errorCode, issues }) => ({ status, errorCode, issues }))).toEqual([
      { status: "completed", issues: { toolFailures: 1 } },
      { status: "failed", errorCode: expect.any(String) },
      { status: "failed", errorCode: "CANCELLED" },
    ]);
  });

  test("A70 RECORDS-1 are all there after 30 turns, in pages, and with the turns that are active", async () => {
    const conversation = await createConversation(agent);
    const played: string[] = [];
    for (let n = 0; n < 30; n++) played.push(await play(conversation));
    const of = `conversation=${conversation.id}`;
    await expect.poll(() => idsOf(of)).toEqual(played);
    const paged: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await list(`${of}&limit=7${cursor}`);
      paged.push(...page.turns.map(({ id }) => id));
      if (page.nextCursor === undefined) break;
      cursor = `&cursor=${page.nextCursor}`;
    }
    expect(paged).toEqual(played);
    const { play: last, turnId } = await conversation.play({
      replies: [[{ gate: "end" }, { text: "Yes." }]],
    });
    await expect.poll(() => idsOf(`${of}&status=active`)).toEqual([turnId]);
    await last.open("end");
    await conversation.ended(turnId);
    await expect.poll(() => idsOf(`${of}&status=active`)).toEqual([]);
    expect(await idsOf(of)).toEqual([...played, turnId]);
  });

  test("A70 DIR-2 DIR-11 are listed for the people of their conversations and for operators of their tenant", async () => {
    const conversation = await createConversation(agent);
    const turnId = await play(conversation, [[{ call: "double", input: { n: 1 } }], [{ text: "2." }]]);
    for (const filter of ["", "&status=completed", "&tool=test/double", "&user=ada&targetKind=code"]) {
      const query = `conversation=${conversation.id}${filter}`;
      await expect.poll(() => idsOf(query)).toEqual([turnId]);
      await expect.poll(() => idsOf(query, ADA)).toEqual([turnId]);
      expect(await idsOf(query, BEN)).toEqual([]);
      expect(await idsOf(query, { ...OLGA, tenant: "elsewhere" })).toEqual([]);
      expect(await idsOf(query, { ...ADA, tenant: "elsewhere" })).toEqual([]);
    }
    const body = JSON.stringify({ type: "user", id: "ben" });
    expect((await request(`${conversation.path}/participants`, { method: "POST", body })).status).toBe(200);
    await expect.poll(() => idsOf(`conversation=${conversation.id}`, BEN)).toEqual([turnId]);
  });

  test("A70 RECORDS-1 RECORDS-2 are caught up after an outage of D1 and a crash, and turns do not wait for D1", async () => {
    const conversation = await createConversation(agent);
    const first = await play(conversation);
    await expect.poll(() => storedTurns(conversation)).toBe(1);
    await env.DB.exec("ALTER TABLE turn_labels RENAME TO turn_labels_away");
    const missed: string[] = [];
    try {
      missed.push(await play(conversation), await play(conversation));
      await conversation.wake();
      const response = await request(`/api/turns?agent=${agent}`, {}, OLGA);
      expect(response.status).toBe(503);
      await crash();
    } finally {
      await env.DB.exec("ALTER TABLE turn_labels_away RENAME TO turn_labels");
    }
    expect(await storedTurns(conversation)).toBe(1);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    expect(await conversation.wake(), "a wake-up is armed").toBe(true);
    await expect.poll(() => idsOf(`conversation=${conversation.id}`)).toEqual([first, ...missed]);
  });

  test("A70 RECORDS-3 H6 lose erased texts, and the rows of deleted conversations", async () => {
    const conversation = await createConversation(agent);
    const secret = `secret-${crypto.randomUUID()}`;
    const turnId = await play(conversation, [[{ text: `It is ${secret}.` }]]);
    const other = await play(conversation);
    await expect.poll(() => idsOf(`conversation=${conversation.id}`)).toEqual([turnId, other]);
    expect(await rowsOfD1()).toContain(secret);
    for (const { id } of (await conversation.messages()).filter((message) => message.turnId === turnId))
      expect((await request(`${conversation.path}/events/${id}`, { method: "DELETE" })).status).toBe(204);
    await expect.poll(rowsOfD1).not.toContain(secret);
    const { turns } = await list(`conversation=${conversation.id}`);
    expect(turns[0]?.messages.map(({ text }) => text)).toEqual(["[erased]", "[erased]"]);
    expect(turns.map(({ id }) => id)).toEqual([turnId, other]);
    skipInvariants(conversation);
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(rowsOfD1).not.toContain(turnId);
    expect(await rowsOfD1()).not.toContain(conversation.id);
  });
});

const BASE: TurnRecord = {
  ...{ id: "turn_1", conversationId: "conv_1", agentId: "a", projectId: "p", status: "active" },
  ...{ createdAt: "2026-01-01T00:00:00.000Z", completedAt: null, correlationId: "c" },
  ...{ tools: [], targetKinds: [], runIds: [], usage: null, cost: null, messages: [] },
};

describe("A70 the rows of turns", () => {
  test("A70 DIR-10 end with the newest state of each turn after puts in any order, also repeated", async () => {
    const directory = new D1Directory(env.DB);
    const state = fc.record({
      status: fc.constantFrom<TurnRecord["status"][]>("active", "completed", "failed"),
      tools: fc.uniqueArray(fc.constantFrom("t/a", "t/b", "t/c")),
      targetKinds: fc.uniqueArray(fc.constantFrom<TurnRecord["targetKinds"][number][]>("code", "client")),
    });
    const puts = fc
      .array(fc.tuple(state, state), { minLength: 1, maxLength: 4 })
      .chain((states) =>
        fc.tuple(
          fc.constant(states),
          fc.array(fc.nat(states.length - 1), { maxLength: 6 }),
          fc.shuffledSubarray([...states.keys()], { minLength: states.length }),
        ),
      );
    await fc.assert(
      fc.asyncProperty(puts, async ([states, repeated, order]) => {
        const tenant = `puts-${crypto.randomUUID()}`;
        const recordsOf = (index: number) =>
          (states[index] ?? []).map((given, n) => ({ ...BASE, ...given, id: `turn_${n}` }));
        for (const index of [...order, ...repeated]) {
          const published = { turns: recordsOf(index), seq: index + 1, upTo: index + 1 };
          await directory.putTurns(tenant, { id: "conv_1", createdAt: 1 }, published);
        }
        const newest = recordsOf(states.length - 1);
        const principal = { tenant, subject: "op", roles: ["operator" as const] };
        expect((await directory.turns(principal)).items).toEqual(newest);
        expect(await directory.publishedTurns(tenant, "conv_1")).toBe(states.length);
        for (const tool of ["t/a", "t/b", "t/c"] as const) {
          const expected = newest.filter(({ tools }) => tools.includes(tool));
          expect((await directory.turns(principal, { tool })).items).toEqual(expected);
        }
        for (const status of ["active", "completed", "failed"] as const) {
          const expected = newest.filter((turn) => turn.status === status);
          expect((await directory.turns(principal, { status })).items).toEqual(expected);
        }
      }),
      { numRuns: 25 },
    );
  });

  test("A70 DIR-10 repeated puts write no row of a turn", async () => {
    const directory = new D1Directory(env.DB);
    const tenant = `repeat-${crypto.randomUUID()}`;
    const put = (database: D1Database) =>
      new D1Directory(database).putTurns(
        tenant,
        { id: "conv_1", createdAt: 1 },
        { turns: [{ ...BASE, tools: ["t/a"] }], seq: 3, upTo: 3 },
      );
    await directory.publishedTurns(tenant, "conv_1");
    const written: number[] = [];
    const counting = {
      prepare: (sql: string) => env.DB.prepare(sql),
      batch: async (statements: D1PreparedStatement[]) => {
        const results = await env.DB.batch(statements);
        written.push(results.reduce((sum, { meta }) => sum + meta.rows_written, 0));
        return results;
      },
    };
    // SAFETY: the members that the queries use.
    const database = counting as unknown as D1Database;
    await put(database);
    await put(database);
    expect(written.at(-2)).toBe(6);
    expect(written.at(-1)).toBe(0);
  });

  test("A70 DIR-11 each list reads an index", async () => {
    await new D1Directory(env.DB).publishedTurns("t", "c");
    const filters: TurnFilter[] = [
      {},
      { agent: "a" },
      { status: "completed" },
      { status: "failed", since: 1, until: 9 },
      { run: "run_1", tool: "t/a", user: "u", targetKind: "code" },
      { conversation: "conv_1", status: "active" },
    ];
    for (const filter of filters) {
      for (const order of ["asc", "desc"] as const) {
        for (const member of [undefined, "ada"]) {
          const [sql, ...values] = listTurns("t", listRange({ order }), filter, member);
          const plan = await env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
            .bind(...values)
            .all<{ detail: string }>();
          const details = plan.results.map(({ detail }) => detail);
          const scans = details.filter((detail) => /SCAN (?:keys|turns|other|own|member)\b/.test(detail));
          expect([filter, member, scans]).toEqual([filter, member, []]);
          expect(details.join()).toMatch(/keys USING .*\(tenant=\?/);
        }
      }
    }
  });
});

test("A70 H7 RECORDS-1 a fork and its original each have their turns, until they are deleted", async () => {
  const original = await createConversation(agent);
  skipInvariants(original);
  const turnId = await play(original);
  const response = await request(`${original.path}/fork`, { method: "POST" });
  const { id } = await response.json<{ id: string }>();
  for (const one of [original.id, id])
    await expect
      .poll(async () => (await list(`conversation=${one}`)).turns)
      .toMatchObject([{ id: turnId, conversationId: one }]);
  const both = await list(`agent=${agent}&limit=200&order=desc`);
  expect(
    both.turns
      .filter((turn) => turn.id === turnId)
      .map((turn) => turn.conversationId)
      .sort(),
  ).toEqual([original.id, id].sort());
  expect((await request(`/api/conversations/${id}`, { method: "DELETE" })).status).toBe(204);
  await expect.poll(() => idsOf(`conversation=${id}`)).toEqual([]);
  expect(await idsOf(`conversation=${original.id}`)).toEqual([turnId]);
});

test("A70 RECORDS-1 a turn that is stopped while it waits for a person is published without another event", async () => {
  const careful = await createAgent("test/careful");
  const conversation = await createConversation(careful);
  skipInvariants(conversation);
  const client = await conversation.connect();
  const { turnId } = await conversation.play((key) => ({
    replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "Done." }]],
  }));
  await client.frame("approval.requested");
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11_000 });
  await conversation.wake();
  await expect
    .poll(async () => (await list(`conversation=${conversation.id}`)).turns[0]?.status)
    .toBe("active");
  await conversation.stop(turnId);
  const wait = async () => {
    const alarm = await runInDurableObject(conversation.stub, (_, { storage }) => storage.getAlarm());
    return (alarm ?? Number.POSITIVE_INFINITY) - Date.now();
  };
  expect(await wait()).toBeLessThanOrEqual(15_000);
  vi.setSystemTime(Date.now() + 15_000);
  expect(await conversation.wake()).toBe(true);
  await expect
    .poll(async () => (await list(`conversation=${conversation.id}`)).turns[0]?.status)
    .toBe("failed");
});
