/** A conversation on record, on the real Worker: projections of the journal while it works, after its end, and after evictions. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { PROJECTIONS, type Projection, type ProjectionName } from "../../src/protocol/projection-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

let handy: string;
let buyer: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
  buyer = await createAgent("test/buyer");
});

afterEach(checkInvariants);

const client = createClient({
  baseUrl: "http://dramatis.test",
  fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init),
});

const read = <Name extends ProjectionName>({ id }: TestConversation, name: Name) =>
  client.conversations.projection(id, name);

async function readAll(conversation: TestConversation): Promise<Projection[]> {
  return Promise.all(PROJECTIONS.map((name) => read(conversation, name)));
}

/** A turn with a call of a tool, which has ended. */
async function turnWithCall(conversation: TestConversation, input: unknown = 3) {
  const { play, turnId } = await conversation.play({
    replies: [
      [{ text: "I look it up. " }, { call: "double", input: { n: input } }],
      [{ text: "It is six." }],
    ],
  });
  await conversation.ended(turnId);
  return { play, turnId };
}

describe("the projections of a conversation", () => {
  test("E17 have the messages, the events and the counts of its journal", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await turnWithCall(conversation);
    const journal = await conversation.journal();
    const timeline = await read(conversation, "timeline");
    expect(timeline.entries.map(({ seq, type }) => [seq, type])).toEqual(
      journal.map(({ seq, type }) => [seq, type]),
    );
    const completed = timeline.entries.find(({ type }) => type === "tool.completed");
    expect(completed).toMatchObject({ turnId, data: { result: expect.anything() } });
    const context = await read(conversation, "llm_context");
    expect(context).toMatchObject({ projectId: "default", status: "idle", eventCount: journal.length });
    expect(context.messages.map(({ role, content }) => [role, content])).toEqual([
      ["user", play.content],
      ["agent", "It is six."],
    ]);
    const diagnostics = await read(conversation, "diagnostics");
    expect(diagnostics).toMatchObject({
      ...{ eventCount: journal.length, turnCount: 1, activeTurnCount: 0, pendingToolCallCount: 0 },
      lastEventType: journal.at(-1)?.type,
    });
    const counts = Map.groupBy(journal, ({ type }) => type);
    expect(new Map(Object.entries(diagnostics.eventCounts))).toEqual(
      new Map([...counts].map(([type, entries]) => [type, entries.length])),
    );
  });

  test("E17 PROJ-6 have the newest version of a turn in the context, and every version in the timeline", async () => {
    const conversation = await createConversation(handy);
    const { turnId: old } = await turnWithCall(conversation);
    const { turnId: again } = await client.turns.regenerate(conversation.id, old);
    await conversation.ended(again);
    const { messages } = await read(conversation, "llm_context");
    expect(messages.map(({ role, turnId }) => [role, turnId])).toEqual([
      ["user", again],
      ["agent", again],
    ]);
    const { entries } = await read(conversation, "timeline");
    expect(entries.filter(({ type }) => type === "turn.completed").map(({ turnId }) => turnId)).toEqual([
      old,
      again,
    ]);
  });

  test("E17 PROJ-7 of a fork have no turn that was active when it was made", async () => {
    const source = await createConversation(buyer);
    const { play } = await source.play((key) => ({
      replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]],
    }));
    await play.runs(1);
    const { turnId } = await source.play({ replies: [[{ text: "Kept." }]] });
    await source.ended(turnId);
    const { id } = await client.conversations.fork(source.id, { turnId });
    const active = { activeTurnCount: 1, pendingToolCallCount: 1, status: "running" };
    expect(await read(source, "diagnostics")).toMatchObject(active);
    expect(await client.conversations.projection(id, "diagnostics")).toMatchObject({
      ...{ activeTurnCount: 0, pendingToolCallCount: 0, status: "idle", conversationStatus: "active" },
    });
    expect((await client.conversations.projection(id, "pending_tool_calls")).calls).toEqual([]);
    const { messages } = await client.conversations.projection(id, "llm_context");
    expect(messages.map(({ turnId: of }) => of)).toEqual([turnId, turnId]);
    const incidents = await client.conversations.incidents(id);
    expect(incidents).toEqual({ incidents: [] });
    expect((await client.conversations.projection(id, "canonical_timeline")).events).not.toEqual([]);
    await client.conversations.cancel(source.id);
  });

  test("E17 JOURNALTURN-1 select the entries of a turn in pages, also beside a turn that waits", async () => {
    const conversation = await createConversation(buyer);
    const { play, turnId: waiting } = await conversation.play((key) => ({
      replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]],
    }));
    const [run = expect.fail("no run")] = await play.runs(1);
    const { turnId } = await conversation.play({ replies: [[{ text: "Kept." }]] });
    await conversation.ended(turnId);
    for (const turn of [waiting, turnId]) {
      const own = (await read(conversation, "timeline")).entries.filter((entry) => entry.turnId === turn);
      const pages = { asc: own, desc: own.toReversed() };
      for (const [order, entries] of Object.entries(pages)) {
        const found: unknown[] = [];
        for (let cursor: string | undefined = ""; cursor !== undefined; ) {
          const query: string = `turn=${turn}&order=${order}&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`;
          const answer = await request(`${conversation.path}/projections/timeline?${query}`);
          const page = await answer.json<{ entries: unknown[]; nextCursor?: string }>();
          expect(page.entries.length).toBeLessThanOrEqual(2);
          found.push(...page.entries);
          cursor = page.nextCursor;
        }
        expect(found).toEqual(entries);
      }
    }
    for (const path of ["journal", "projections/timeline", "incidents"]) {
      const unknown = await request(`${conversation.path}/${path}?turn=${waiting.replace(/.$/, "z")}`);
      expect([unknown.status, await unknown.json()]).toMatchObject([404, { code: "NOT_FOUND" }]);
    }
    // SAFETY: the tools of the test library report it.
    const { handle } = run.input as { handle: string };
    await client.operations.complete(handle, { result: 1 });
    await conversation.ended(waiting);
  });

  test("E17 name the calls that have no result yet", async () => {
    const conversation = await createConversation(buyer);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]],
    }));
    const [run = expect.fail("no run")] = await play.runs(1);
    await expect.poll(async () => (await conversation.view()).status).toBe("waiting");
    await conversation.evict();
    const { calls } = await read(conversation, "pending_tool_calls");
    expect(calls).toEqual([expect.objectContaining({ turnId, name: "pay", state: "running" })]);
    expect(await read(conversation, "diagnostics")).toMatchObject({
      ...{ status: "running", conversationStatus: "waiting", pendingToolCallCount: 1 },
    });
    // SAFETY: the tools of the test library report it.
    const { handle } = run.input as { handle: string };
    await client.operations.complete(handle, { result: 1 });
    await conversation.ended(turnId);
    expect((await read(conversation, "pending_tool_calls")).calls).toEqual([]);
  });

  test("E18 E30 are readable after the end of the conversation and after evictions, and stay the same", async () => {
    const conversation = await createConversation(handy);
    await turnWithCall(conversation);
    const other = await createConversation(handy);
    await turnWithCall(other);
    const untouched = await readAll(other);
    await client.conversations.complete(conversation.id);
    const before = await readAll(conversation);
    await conversation.evict();
    expect(await readAll(conversation)).toEqual(before);
    expect(before).toContainEqual(expect.objectContaining({ conversationStatus: "completed" }));
    expect(await readAll(other)).toEqual(untouched);
  });

  test("E28 PROJ-3 have no secrets of calls and of messages", async () => {
    const conversation = await createConversation(handy);
    const key = "sk-1234567890abcdef";
    await turnWithCall(conversation, key);
    const { turnId } = await conversation.say(`My key is ${key}.`);
    await conversation.ended(turnId);
    const text = JSON.stringify(await readAll(conversation));
    expect(text).not.toContain(key);
    expect(text).toContain("My key is [redacted].");
  });

  test("E17 are for readers of the conversation only, and an unknown name lists the names", async () => {
    const conversation = await createConversation(handy);
    const stranger: Principal = { subject: "mel", tenant: "test", roles: ["member"] };
    for (const name of PROJECTIONS) {
      const path = `${conversation.path}/projections/${name}`;
      const refused = await request(path, {}, stranger);
      expect([refused.status, await refused.json()]).toMatchObject([404, { code: "NOT_FOUND" }]);
    }
    const unknown = await request(`${conversation.path}/projections/time_line`);
    const { detail } = await unknown.json<{ detail: string }>();
    expect(unknown.status).toBe(404);
    for (const name of PROJECTIONS) expect(detail).toContain(name);
  });
});
