/** Lists of conversations by latest activity, pins and archives of one person, and forks in lists. */
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createClient } from "../../src/client/http.ts";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import type { ConversationListOptions } from "../../src/protocol/conversation-api.ts";
import type { TurnRecord } from "../../src/protocol/turn-records.ts";
import type { PublishedConversation } from "../../src/protocol/views.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { rowsOfD1 } from "./everything.ts";
import { rowsRead, rowsWritten } from "./rows-read.ts";
import {
  checkInvariants,
  createAgent,
  createConversation,
  request,
  skipInvariants,
  type TestConversation,
} from "./world.ts";

const person = (subject: string, tenant = "test", ...roles: Principal["roles"]): Principal => ({
  subject,
  tenant,
  roles: roles.length === 0 ? ["member"] : roles,
});
const START = 1_700_000_000_000;
const directory = new D1Directory(env.DB);
let agent: string;

beforeAll(async () => {
  agent = await createAgent("test/handy");
});

afterEach(async () => {
  vi.useRealTimers();
  await checkInvariants();
});

function conversation(id: string, at: number, users: string[]): PublishedConversation {
  return {
    ...{ id, title: null, agentId: "a", projectId: "default", createdAt: new Date(START + at).toISOString() },
    participants: users.map((user) => ({ type: "user" as const, id: user })),
  };
}

function turn(conversationId: string, n: number, at: number): TurnRecord {
  return {
    ...{ id: `turn_${n}`, conversationId, agentId: "a", projectId: "default", status: "completed" as const },
    ...{ createdAt: new Date(START + at).toISOString(), completedAt: new Date(START + at).toISOString() },
    ...{ tools: [], targetKinds: [], runIds: [], messages: [] },
  } as unknown as TurnRecord;
}

/** Publishes a turn that began and ended at a time. */
function publishTurn(tenant: string, id: string, createdAt: number, n: number, at: number): Promise<void> {
  const published = { turns: [turn(id, n, at)], seq: n, upTo: n, activeAt: START + at };
  return directory.putTurns(tenant, { id, createdAt: START + createdAt }, published);
}

async function idsOf(principal: Principal, options: ConversationListOptions = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await directory.conversations(principal, {
      ...options,
      ...(cursor !== undefined && { cursor }),
    });
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor;
    if (cursor === undefined) return ids;
  }
}

describe("A70 lists of conversations", () => {
  test("A70 DIR-12 DIR-13 every page equals a model of activity, pins and archives", async () => {
    const user = fc.constantFrom("u", "v");
    const action = fc.oneof(
      fc.record({ type: fc.constant("turn" as const), of: fc.nat(5) }),
      fc.record({
        type: fc.constantFrom("pinned" as const, "archived" as const),
        of: fc.nat(5),
        user: fc.constantFrom("u", "v", "op"),
        on: fc.boolean(),
      }),
    );
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uniqueArray(user, { maxLength: 2 }), { minLength: 1, maxLength: 6 }),
        fc.array(action, { maxLength: 14 }),
        fc.integer({ min: 1, max: 4 }),
        async (users, actions, limit) => {
          run += 1;
          const tenant = `lists-${run}`;
          const rows = users.map((members: string[], n) => ({ id: `c${n}`, at: n, members, active: n }));
          for (const { id, at, members } of rows)
            await directory.putConversation(tenant, conversation(id, at, members), 1);
          const marks = new Map<string, number>();
          for (const [n, one] of actions.entries()) {
            const row = rows[one.of % rows.length];
            const now = 100 + n;
            if (row === undefined) continue;
            if (one.type === "turn") {
              row.active = now;
              await publishTurn(tenant, row.id, row.at, n + 1, now);
              continue;
            }
            const key = `${one.type}:${one.user}:${row.id}`;
            if (one.on) marks.set(key, now);
            else marks.delete(key);
            const owner = { id: row.id, createdAt: START + row.at };
            await directory.mark(person(one.user, tenant), owner, one.type, one.on ? START + now : null);
          }
          for (const reader of [person("u", tenant), person("v", tenant), person("op", tenant, "operator")]) {
            const { subject } = reader;
            const own = rows.filter(({ members }) => subject === "op" || members.includes(subject));
            const isPinned = ({ id }: { id: string }) => marks.has(`pinned:${subject}:${id}`);
            const isArchived = ({ id, active }: { id: string; active: number }) =>
              (marks.get(`archived:${subject}:${id}`) ?? -1) >= active;
            const recent = own.toSorted((a, b) => b.active - a.active);
            const ids = (found: { id: string }[]) => found.map(({ id }) => id);
            const open = recent.filter((row) => !isArchived(row));
            const byActivity = (filter: ConversationListOptions) =>
              idsOf(reader, { sort: "activity", limit, ...filter });
            expect(await idsOf(reader, { limit })).toEqual(ids(own.filter((row) => !isArchived(row))));
            expect(await byActivity({})).toEqual(ids(open));
            expect(await byActivity({ order: "asc" })).toEqual(ids(open.toReversed()));
            expect(await byActivity({ pinned: true })).toEqual(ids(open.filter(isPinned)));
            expect(await byActivity({ pinned: false })).toEqual(ids(open.filter((row) => !isPinned(row))));
            expect(await byActivity({ archived: true })).toEqual(ids(recent.filter(isArchived)));
            expect(await idsOf(reader, { limit, archived: true, pinned: true })).toEqual(
              ids(own.filter((row) => isArchived(row) && isPinned(row))),
            );
            const { items } = await directory.conversations(reader, { sort: "activity" });
            expect(items.map(({ lastActivityAt, pinned }) => [Date.parse(lastActivityAt), pinned])).toEqual(
              open.map((row) => [START + row.active, isPinned(row) ? true : undefined]),
            );
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  test("A70 DIR-12 a conversation that moves between pages is omitted, and no other is repeated or omitted", async () => {
    const tenant = "moving";
    const put = (n: number) => directory.putConversation(tenant, conversation(`c${n}`, n, ["u"]), 1);
    for (let n = 0; n < 6; n++) await put(n);
    for (const reader of [person("u", tenant), person("op", tenant, "operator")]) {
      const options = { sort: "activity", limit: 2 } as const;
      const first = await directory.conversations(reader, options);
      const [moved = "", seen = ""] = [`c${reader.subject === "u" ? 1 : 2}`, first.items[0]?.id];
      await publishTurn(tenant, moved, Number(moved.slice(1)), 1, 100);
      await publishTurn(tenant, seen, Number(seen.slice(1)), 1, 101);
      const rest = await idsOf(reader, { ...options, cursor: first.nextCursor ?? "" });
      const all = [...first.items.map(({ id }) => id), ...rest];
      expect(new Set(all).size).toBe(all.length);
      expect(all.toSorted()).toEqual(["c0", "c1", "c2", "c3", "c4", "c5"].filter((id) => id !== moved));
    }
  });

  test("A70 DIR-12 a put of turns costs one row for the activity, and no statement; a late put moves nothing", async () => {
    const tenant = "activity-cost";
    await directory.putConversation(tenant, conversation("c", 0, ["u"]), 1);
    const put = (id: string, n: number, at?: number) => () =>
      directory.putTurns(
        tenant,
        { id, createdAt: START },
        { turns: [turn(id, n, 5)], seq: n, upTo: n, ...(at !== undefined && { activeAt: START + at }) },
      );
    await put("c", 1, 5)();
    await put("unlisted", 1)();
    const unlisted = await rowsWritten(put("unlisted", 2));
    const listed = await rowsWritten(put("c", 2, 9));
    expect(listed).toEqual({ statements: 4, rows: unlisted.rows + 1 });
    expect((await rowsWritten(put("c", 1, 100))).rows).toBe(0);
    const { items } = await directory.conversations(person("u", tenant), { sort: "activity" });
    expect(items[0]?.lastActivityAt).toBe(new Date(START + 9).toISOString());
  });

  test("A70 DIR-12 a page reads about its rows among 500 conversations, for a principal that reads all", async () => {
    const tenant = "many";
    for (let n = 0; n < 500; n++)
      await directory.putConversation(tenant, conversation(`c${n}`, n, n % 100 === 0 ? ["u"] : []), 1);
    const read = (principal: Principal) =>
      rowsRead(() => directory.conversations(principal, { sort: "activity", limit: 10 }));
    expect(await read(person("op", tenant, "operator"))).toBeLessThan(80);
    expect(await read(person("u", tenant))).toBeLessThan(40);
  });

  test("A70 DIR-14 the titles of a page are one query, which reads two rows for each conversation", async () => {
    const tenant = "titled";
    for (let n = 0; n < 100; n++)
      await directory.putConversation(
        tenant,
        { ...conversation(`c${n}`, n, []), title: n === 0 ? null : `Title ${n}` },
        1,
      );
    await directory.putConversation("elsewhere", { ...conversation("c100", 0, []), title: "Secret" }, 1);
    const all = vi.spyOn(Object.getPrototypeOf(env.DB.prepare("SELECT 1")), "all");
    const found = await directory.titles(tenant, ["c0", "c1", "c2", "c1", "c100", "c'"]);
    expect(found).toEqual(new Map([1, 2].map((n) => [`c${n}`, `Title ${n}`])));
    expect(all).toHaveBeenCalledTimes(1);
    all.mockRestore();
    const ids = Array.from({ length: 20 }, (_, n) => `c${n + 1}`);
    expect(await rowsRead(() => directory.titles(tenant, ids))).toBeLessThanOrEqual(60);
    expect(await rowsRead(() => directory.titles(tenant, []))).toBe(0);
  });

  test("A70 DIR-12 a list by activity of a member with 3,000 conversations reads the newest 1,000", async () => {
    const tenant = "prolific";
    const numbers =
      "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)";
    await env.DB.batch([
      env.DB.prepare(`INSERT INTO conversation_users (tenant, user_id, created_at, id)
${numbers} SELECT ?1, 'u', n, 'c' || n FROM numbers`).bind(tenant),
      env.DB.prepare(`INSERT INTO conversations (tenant, created_at, id, agent_id, project_id, participants, seq)
${numbers} SELECT ?1, n, 'c' || n, 'a', 'default', '[]', 1 FROM numbers`).bind(tenant),
    ]);
    const reader = person("u", tenant);
    const page = () => directory.conversations(reader, { sort: "activity", limit: 2 });
    expect((await page()).items.map(({ id }) => id)).toEqual(["c3000", "c2999"]);
    expect(await rowsRead(page)).toBeLessThan(9_000);
  });

  test("A70 DIR-12 a turn in a conversation moves it to the front of the list", async () => {
    const [first, second] = [await createConversation(agent), await createConversation(agent)];
    const front = async () => {
      const found = await list("sort=activity&limit=200");
      return found.map(({ id }) => id).filter((id) => [first.id, second.id].includes(id));
    };
    await expect.poll(front).toEqual([second.id, first.id]);
    await play(first);
    await expect.poll(front).toEqual([first.id, second.id]);
    // Other files have conversations in the same list.
    const row = (await list("sort=activity&limit=200")).find(({ id }) => id === first.id);
    const [latest] = (
      await (await request(`${first.path}/turns`)).json<{ turns: { completedAt: string }[] }>()
    ).turns;
    expect(row).toMatchObject({ id: first.id, lastActivityAt: latest?.completedAt });
    expect((await request("/api/conversations?sort=size")).status).toBe(422);
    expect((await request("/api/conversations?archived=yes")).status).toBe(422);
  });

  test("A70 DIR-13 a person pins and archives for themselves; a new message cancels the archive; a deletion removes the rows", async () => {
    const own = await createConversation(agent);
    const ben = person("ben");
    const invited = await request(`${own.path}/participants`, {
      method: "POST",
      body: JSON.stringify({ type: "user", id: "ben" }),
    });
    expect(invited.status).toBe(200);
    const rowFor = async (principal: Principal, query = "") =>
      (await list(`limit=200&order=desc${query}`, principal)).find(({ id }) => id === own.id);
    await expect.poll(() => rowFor(ben)).toMatchObject({ id: own.id });
    const { conversations } = createClient({
      baseUrl: "http://dramatis.test",
      fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init, ben),
    });
    await conversations.pin(own.id);
    await conversations.pin(own.id);
    await conversations.archive(own.id);
    expect(await rowFor(ben)).toBeUndefined();
    expect(await rowFor(ben, "&archived=true")).toMatchObject({ archived: true, pinned: true });
    const { conversations: pinned } = await conversations.list({ pinned: true, archived: true });
    expect(pinned.map(({ id }) => id)).toEqual([own.id]);
    expect(await rowFor(person("ada")), "of the other person").not.toHaveProperty("pinned");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 1_000 });
    await play(own);
    await expect.poll(() => rowFor(ben)).toMatchObject({ pinned: true });
    expect(await rowFor(ben)).not.toHaveProperty("archived");
    await conversations.archive(own.id);
    expect(await rowFor(ben), "again").toBeUndefined();
    await conversations.unarchive(own.id);
    await conversations.unpin(own.id);
    expect(await rowFor(ben)).not.toHaveProperty("pinned");
    await conversations.archive(own.id);
    expect((await request(`${own.path}/pin`, { method: "PUT" }, person("eve"))).status).toBe(404);
    skipInvariants(own);
    expect((await request(own.path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(rowsOfD1).not.toContain(own.id);
    expect((await request(`${own.path}/pin`, { method: "PUT" })).status).toBe(404);
  });

  test("A70 DIR-13 a mark on a conversation that no list has is refused", async () => {
    const owner = { id: "nowhere", createdAt: START };
    await expect(directory.mark(person("u"), owner, "pinned", START)).rejects.toMatchObject({
      code: "CONFLICT",
      retriable: true,
    });
  });
});

async function list(query: string, principal = person("ada")) {
  const response = await request(`/api/conversations?${query}`, {}, principal);
  expect(response.status, await response.clone().text()).toBe(200);
  return (
    await response.json<{
      conversations: { id: string; title: string | null; lastActivityAt: string }[];
    }>()
  ).conversations;
}

async function play(of: TestConversation): Promise<string> {
  const { turnId } = await of.play({ replies: [[{ text: "Yes." }]] });
  await of.ended(turnId);
  return turnId;
}
