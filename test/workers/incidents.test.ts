/** A conversation on record, on the real Worker: causes and incidents, repeated signals, equal ids of two tenants, and outages of D1. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createClient } from "../../src/client/index.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import type { Incident } from "../../src/protocol/record-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import {
  ADA,
  checkInvariants,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

let handy: string;
let persistent: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
  persistent = await createAgent("test/persistent");
});

afterEach(checkInvariants);

const clientOf = (principal: Principal) =>
  createClient({
    baseUrl: "http://dramatis.test",
    fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init, principal),
  });
const client = clientOf(ADA);

/** A turn with two calls of a tool in one reply, which has ended. */
async function turnWithCalls(conversation: TestConversation): Promise<string> {
  const { turnId } = await conversation.play({
    replies: [
      [{ text: "I look it up. " }, { call: "double", input: { n: 3 } }, { call: "double", input: { n: 4 } }],
      [{ text: "Six and eight." }],
    ],
  });
  await conversation.ended(turnId);
  return turnId;
}

/** A turn with a failed attempt of a tool, and a failed tool, which has ended. */
async function turnWithFailures(conversation: TestConversation): Promise<string> {
  const { turnId } = await conversation.play((key) => ({
    replies: [
      [{ call: "flaky", input: { key, failures: 1 } }],
      [{ call: "fails", input: { key, retriable: false } }],
      [{ text: "It failed." }],
    ],
  }));
  await conversation.ended(turnId);
  return turnId;
}

const types = (entries: readonly { type: string }[]) => entries.map(({ type }) => type);

describe("the causes of an entry", () => {
  test("E21 LINK-1 LINK-3 lead from the end of a turn back to its message, through its tool", async () => {
    const conversation = await createConversation(handy);
    const turnId = await turnWithCalls(conversation);
    const journal = await conversation.journal();
    const end = journal.findLast(({ type }) => type === "turn.completed") ?? expect.fail("no end");
    const { entries, partial } = await client.conversations.causes(conversation.id, end.seq);
    const path = types(entries).filter((type) =>
      /^(?:tool|message)\.(?:user|requested|completed)|^turn/.test(type),
    );
    expect(path).toEqual([
      ...["turn.completed", "message.completed", "tool.completed", "tool.requested", "message.completed"],
      ...["message.user", "turn.started"],
    ]);
    expect(partial).toBeUndefined();
    expect(entries.map(({ cause }) => cause)).toEqual([...entries.slice(1).map(({ seq }) => seq), undefined]);
    expect(new Set(entries.map((entry) => entry.turnId))).toEqual(new Set([turnId]));
  });

  test("E21 LINK-2 LINK-3 lead forward from the message to every entry of its turn, and from a call to its result only until the next reply", async () => {
    const conversation = await createConversation(handy);
    const first = await turnWithCalls(conversation);
    await turnWithCalls(conversation);
    const journal = await conversation.journal();
    const own = journal.filter(({ turnId }) => turnId === first);
    const begin = own[0]?.seq ?? 0;
    const chain = await client.conversations.causes(conversation.id, begin, { direction: "forward" });
    expect(chain.entries.map(({ seq }) => seq)).toEqual(own.map(({ seq }) => seq));
    const [call = expect.fail("no call"), other] = own.filter(({ type }) => type === "tool.requested");
    const { entries } = await client.conversations.causes(conversation.id, call.seq, {
      direction: "forward",
    });
    expect(types(entries).slice(0, 2)).toEqual(["tool.requested", expect.stringMatching(/^t(?:ool|ask)\./)]);
    expect(entries.map(({ operationId }) => operationId)).not.toContain(other?.operationId);
  });

  test("E21 are readable in pages, after the end of the conversation and after an eviction", async () => {
    const conversation = await createConversation(handy);
    await turnWithCalls(conversation);
    const [{ seq } = expect.fail("no entry")] = (await conversation.journal()).filter(
      ({ type }) => type === "turn.completed",
    );
    const { entries } = await client.conversations.causes(conversation.id, seq);
    await client.conversations.complete(conversation.id);
    await conversation.evict();
    const paged: JournalEntryView[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page = { limit: 2, ...(cursor === "" ? {} : { cursor }) };
      const answer: Awaited<ReturnType<typeof client.conversations.causes>> =
        await client.conversations.causes(conversation.id, seq, page);
      expect(answer.entries.length).toBeLessThanOrEqual(2);
      paged.push(...answer.entries);
      cursor = answer.nextCursor;
    }
    expect(paged).toEqual(entries);
  });

  test("E21 of an unknown number are NOT_FOUND, and an entry without a turn has no other entries", async () => {
    const conversation = await createConversation(handy);
    const { entries } = await client.conversations.causes(conversation.id, 1);
    expect(entries).toEqual([expect.objectContaining({ seq: 1, type: "conversation.started" })]);
    await expect(client.conversations.causes(conversation.id, 999)).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    const unread = await request(`${conversation.path}/journal/x/causes`);
    expect(unread.status).toBe(404);
  });
});

describe("the incidents of a conversation", () => {
  const list = async ({ id }: TestConversation, options = {}): Promise<Incident[]> =>
    (await client.conversations.incidents(id, options)).incidents;

  test("E29 INCIDENT-1 are its failures with kinds, codes and causes, and not its normal work", async () => {
    const conversation = await createConversation(persistent);
    const turnId = await turnWithFailures(conversation);
    const incidents = (await list(conversation)).filter(({ type }) => type.startsWith("tool."));
    expect(incidents.map(({ type, kind, code }) => [type, kind, code])).toEqual([
      ["tool.call.failed", "retry", "EXECUTION_FAILED"],
      ["tool.failed", "failure", "EXECUTION_FAILED"],
    ]);
    expect(incidents.at(-1)).toMatchObject({ turnId, data: { error: { message: "The shelf is empty." } } });
    const { entries } = await client.conversations.journal(conversation.id, { type: "tool.failed" });
    expect(entries.map(({ seq }) => seq)).toEqual([incidents.at(-1)?.seq]);
    const quiet = await createConversation(handy);
    await turnWithCalls(quiet);
    expect(await list(quiet)).toEqual([]);
  });

  test("E29 are filtered by turn and by correlation, in both forms of the id", async () => {
    const conversation = await createConversation(persistent);
    const first = await turnWithFailures(conversation);
    const second = await turnWithFailures(conversation);
    const all = await list(conversation);
    const { correlationId = "" } = await conversation.turn(second);
    const own = all.filter(({ turnId }) => turnId === second);
    expect(own.length).toBeGreaterThan(0);
    expect(all.length).toBe(own.length + (await list(conversation, { turn: first })).length);
    for (const correlation of [correlationId, `${conversation.id}:${second}`])
      expect(await list(conversation, { correlation })).toEqual(own);
    expect(await list(conversation, { correlation: "corr-of-nothing" })).toEqual([]);
  });

  test("E29 are in pages in both orders, and stay after a stop, a restart and the end of the conversation", async () => {
    const conversation = await createConversation(persistent);
    await turnWithFailures(conversation);
    await client.conversations.cancel(conversation.id, { reason: "It costs too much." });
    const stopped = await list(conversation);
    expect(stopped.at(-1)).toMatchObject({
      ...{ type: "conversation.cancelled", kind: "stop" },
      data: { reason: "It costs too much." },
    });
    await conversation.evict();
    expect(await list(conversation)).toEqual(stopped);
    await client.conversations.complete(conversation.id);
    expect(await list(conversation)).toEqual(stopped);
    const paged: Incident[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page = { limit: 1, order: "desc" as const, ...(cursor === "" ? {} : { cursor }) };
      const answer: { incidents: Incident[]; nextCursor?: string } = await client.conversations.incidents(
        conversation.id,
        page,
      );
      paged.push(...answer.incidents);
      cursor = answer.nextCursor;
    }
    expect(paged).toEqual(stopped.toReversed());
  });

  test("E28 E29 PROJ-3 have no secrets, and are for readers of the conversation only", async () => {
    const conversation = await createConversation(persistent);
    const secret = "sk-1234567890abcdef";
    const { turnId } = await conversation.play({
      replies: [{ status: 400, message: `Incorrect API key provided: ${secret}.` }],
    });
    await conversation.ended(turnId);
    expect(JSON.stringify(await conversation.journal())).not.toContain(secret);
    await client.conversations.cancel(conversation.id, { reason: `The key ${secret} is wrong.` });
    const incidents = await list(conversation);
    expect(incidents).toContainEqual(expect.objectContaining({ type: "turn.failed", kind: "failure" }));
    expect(JSON.stringify(incidents)).toContain("Incorrect API key provided");
    expect(incidents.at(-1)?.data).toMatchObject({ reason: "The key [redacted] is wrong." });
    expect(JSON.stringify(incidents)).not.toContain(secret);
    const stranger: Principal = { subject: "mel", tenant: "test", roles: ["member"] };
    for (const path of ["incidents", "journal/1/causes"]) {
      const refused = await request(`${conversation.path}/${path}`, {}, stranger);
      expect([refused.status, await refused.json()]).toMatchObject([404, { code: "NOT_FOUND" }]);
    }
  });
});

describe("the journal", () => {
  const EVE: Principal = { subject: "eve", tenant: "other", roles: ["admin"] };
  const signalOf = (id: string, content: string) => ({
    id,
    type: "conversation.user.message",
    data: { content },
  });

  async function send(
    id: string,
    signal: object,
    principal = ADA,
  ): Promise<{ turnId: string; repeated: boolean }> {
    const path = `/api/conversations/${id}/signals`;
    const response = await request(path, { method: "POST", body: JSON.stringify(signal) }, principal);
    expect(response.status).toBe(202);
    return response.json<{ turnId: string; repeated: boolean }>();
  }

  test("E20 ignores a signal that repeats: at once, later, and after a restart", async () => {
    const conversation = await createConversation(handy);
    const play = new Play({ replies: [[{ text: "Once." }]] });
    const signal = signalOf("signal-1", play.content);
    const answers = await Promise.all([1, 2, 3].map(() => send(conversation.id, signal)));
    const [turnId = "", ...others] = new Set(answers.map((answer) => answer.turnId));
    expect(others).toEqual([]);
    expect(answers.filter(({ repeated }) => !repeated)).toHaveLength(1);
    await conversation.ended(turnId);
    const journal = await conversation.journal();
    expect(await send(conversation.id, signal)).toMatchObject({ turnId, repeated: true });
    await conversation.evict();
    expect(await send(conversation.id, signal)).toMatchObject({ turnId, repeated: true });
    expect(await conversation.journal()).toEqual(journal);
    expect(types(journal).filter((type) => type === "message.user")).toHaveLength(1);
    expect(await play.requests()).toHaveLength(1);
  });

  test("E20 of two tenants with equal conversation ids and equal signals stays apart", async () => {
    const conversation = await createConversation(handy);
    const file = await (await request(`${conversation.path}/export`)).text();
    const { id } = conversation;
    const path = `/api/conversations/import?id=${id}`;
    expect((await request(path, { method: "POST", body: file }, EVE)).status).toBe(201);
    const other = clientOf(EVE);
    const [mine, theirs] = ["mine", "theirs"].map((text) => new Play({ replies: [[{ text }]] }));
    const { turnId } = await send(id, signalOf("signal-1", mine?.content ?? ""));
    await conversation.ended(turnId);
    const before = await conversation.journal();
    const begun = await send(id, signalOf("signal-1", theirs?.content ?? ""), EVE);
    expect(begun.repeated).toBe(false);
    await expect.poll(async () => (await other.turns.get(id, begun.turnId)).status).toBe("completed");
    expect(await conversation.journal()).toEqual(before);
    const contexts = await Promise.all(
      [client, other].map(async (reader) => {
        const { messages, eventCount } = await reader.conversations.projection(id, "llm_context");
        return [messages.map(({ turnId: of, content }) => [of, content]), eventCount];
      }),
    );
    expect(contexts[0]).toEqual([
      [
        [turnId, mine?.content],
        [turnId, "mine"],
      ],
      before.length,
    ]);
    expect(JSON.stringify(contexts[1])).toContain("theirs");
    expect(JSON.stringify(contexts[1])).not.toContain(turnId);
  });

  async function tablesOfD1(): Promise<string[]> {
    const query =
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*' AND name NOT GLOB 'sqlite_*'";
    const { results } = await env.DB.prepare(query).all<{ name: string }>();
    return results.map(({ name }) => name);
  }

  test("E22 continues while D1 fails: turns end, projections are readable, the failure is logged, and D1 is caught up", async () => {
    const conversation = await createConversation(handy);
    await turnWithCalls(conversation);
    const tables = await tablesOfD1();
    const failures = vi.spyOn(console, "error").mockImplementation(() => undefined);
    for (const table of tables) await env.DB.exec(`ALTER TABLE ${table} RENAME TO away_${table}`);
    let missed = "";
    try {
      missed = await turnWithCalls(conversation);
      await conversation.wake();
      await expect
        .poll(() => failures.mock.calls.map(([text]) => text))
        .toContain("Publishing to the directory failed; it will be retried:");
      expect((await conversation.turn(missed)).status).toBe("completed");
      const journal = await conversation.journal();
      expect(await client.conversations.projection(conversation.id, "diagnostics")).toMatchObject({
        ...{ eventCount: journal.length, turnCount: 2, activeTurnCount: 0 },
      });
      expect(
        (await client.conversations.projection(conversation.id, "canonical_timeline")).events,
      ).not.toEqual([]);
    } finally {
      for (const table of tables) await env.DB.exec(`ALTER TABLE away_${table} RENAME TO ${table}`);
      failures.mockRestore();
    }
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    expect(await conversation.wake(), "a wake-up is armed").toBe(true);
    await expect
      .poll(async () =>
        (await client.turns.list({ conversation: conversation.id })).turns.map(({ id: of }) => of),
      )
      .toContain(missed);
    vi.useRealTimers();
  });
});
