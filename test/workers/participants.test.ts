/** Several people and agents in one conversation on the real Worker: who gets in, who is shown out, and who answers. */
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createClient } from "../../src/client/http.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { ConversationView } from "../../src/protocol/conversation-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

let guide: string;
let lawyer: string;

beforeAll(async () => {
  guide = await createAgent("test/plain");
  lawyer = await createAgent({
    identity: { systemPrompt: "You are the lawyer.", modelProfileId: "test/scripted" },
  });
});

afterEach(checkInvariants);

const ADA: Principal = { subject: "ada", tenant: "test", roles: ["admin"] };
const BEN: Principal = { subject: "ben", tenant: "test", roles: ["member"] };
const OLGA: Principal = { subject: "olga", tenant: "test", roles: ["operator"] };

type Answer = Partial<ConversationView> & { code?: string; errors?: { path: string; message: string }[] };

async function ask(
  { path }: Pick<TestConversation, "path">,
  method: string,
  below: string,
  body?: object,
  principal = ADA,
): Promise<[number, Answer | null]> {
  const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const response = await request(path + below, init, principal);
  return [response.status, response.status === 204 ? null : await response.json<Answer>()];
}

const join = (conversation: TestConversation, participant: object, principal = ADA) =>
  ask(conversation, "POST", "/participants", participant, principal);
const leave = (conversation: TestConversation, who: string, principal = ADA) =>
  ask(conversation, "DELETE", `/participants/${who}`, undefined, principal);

/** The ids of the conversations that a user's list contains. */
async function listOf(principal: Principal): Promise<string[]> {
  const response = await request("/api/conversations?order=desc&limit=200", {}, principal);
  const { conversations } = await response.json<{ conversations: { id: string }[] }>();
  return conversations.map(({ id }) => id);
}

describe("a user", () => {
  test("A26 PARTY-4 a user who joins may read and speak at once; a user who left may not, and the connections are closed with 4401", async () => {
    const conversation = await createConversation(guide);
    expect(await ask(conversation, "GET", "", undefined, BEN)).toMatchObject([404, { code: "NOT_FOUND" }]);
    const adas = await conversation.connect();
    const [status, view] = await join(conversation, { type: "user", userId: "ben" });
    expect([status, view?.participants]).toEqual([
      200,
      [
        { type: "user", id: "ada" },
        { type: "agent", id: guide },
        { type: "user", id: "ben" },
      ],
    ]);
    expect(await join(conversation, { type: "user", id: "ben" })).toEqual([status, view]);
    expect(await listOf(BEN)).toContain(conversation.id);

    const bens = await conversation.connect({ principal: BEN });
    const operators = await conversation.connect({ principal: OLGA });
    const play = new Play({ replies: [[{ text: "Hi, Ben." }]] });
    bens.send({ type: "turn.start", id: "one", content: play.content });
    await adas.frame("turn.completed");
    expect((await conversation.messages()).map(({ content }) => content)).toEqual([play.content, "Hi, Ben."]);

    await conversation.evict();
    expect(await leave(conversation, "user/ben", OLGA)).toMatchObject([403, { code: "FORBIDDEN" }]);
    expect(await leave(conversation, "user/ben")).toEqual([204, null]);
    expect(await leave(conversation, "user/ben")).toEqual([204, null]);
    expect(await bens.whenClosed()).toEqual({ code: 4401 });
    expect(await ask(conversation, "GET", "", undefined, BEN)).toMatchObject([404, { code: "NOT_FOUND" }]);
    expect(await ask(conversation, "POST", "/turns", { content: "Me?" }, BEN)).toMatchObject([404, {}]);
    expect(await listOf(BEN)).not.toContain(conversation.id);
    await adas.frame("participant.left");
    expect([adas.closed, operators.closed]).toEqual([null, null]);
    expect(adas.state.conversation?.participants).toEqual((await conversation.view()).participants);
    expect(await (await conversation.connect({ principal: BEN })).whenClosed()).toEqual({ code: 4404 });
  });

  test("A26 PARTY-4 with an open stream gets an error when leaving, and the stream ends", async () => {
    const conversation = await createConversation(guide);
    await join(conversation, { type: "user", id: "ben" });
    const stream = await request(`${conversation.path}/events`, {}, BEN);
    const text = stream.text();
    expect(await leave(conversation, "user/ben", BEN)).toEqual([204, null]);
    expect(await text).toContain('"code":"NOT_FOUND"');
  });

  test("A26 PARTY-2 is added and removed only by users who may speak, even with an odd name, and the client library does so", async () => {
    const conversation = await createConversation(guide);
    expect(await join(conversation, { type: "user", id: "mel" }, BEN)).toMatchObject([404, {}]);
    expect(await join(conversation, { type: "user", id: "mel" }, OLGA)).toMatchObject([403, {}]);
    expect(await join(conversation, { type: "robot", id: "x" })).toMatchObject([
      422,
      { code: "INVALID_INPUT" },
    ]);
    expect(await leave(conversation, "robot/x")).toMatchObject([404, {}]);
    const fetch = (url: string, init: RequestInit) => request(new URL(url).pathname, init);
    const { conversations } = createClient({ baseUrl: "http://dramatis.test", fetch });
    const odd = { type: "user", id: "a/b c?d#e@f%20" } as const;
    expect((await conversations.addParticipant(conversation.id, odd)).participants).toContainEqual(odd);
    expect(await conversations.removeParticipant(conversation.id, odd)).toBeUndefined();
    expect((await conversation.view()).participants).not.toContainEqual(odd);
    expect(await leave(conversation, `agent/${guide}`)).toMatchObject([409, { code: "CONFLICT" }]);
  });
});

describe("an agent", () => {
  test("A26 ADDRESS-1 PARTY-3 that joins answers its messages with its own persona, also after a crash, and lists contain it", async () => {
    const conversation = await createConversation(guide);
    const client = await conversation.connect();
    const [status, view] = await join(conversation, { type: "agent", agentId: lawyer });
    expect([status, view?.agentId]).toEqual([200, guide]);
    await client.frame("participant.joined", ({ data }) => data.participant.id === lawyer);
    await vi.waitFor(
      async () => {
        // SAFETY: the class has these methods; the type of a stub wraps what they return.
        const agent = exports.Agent.getByName(`test:${lawyer}`) as unknown as AgentApi;
        const found = await agent.conversations({ limit: 200 });
        expect(found.ok && found.value.items.map(({ id }) => id)).toContain(conversation.id);
      },
      { timeout: 20_000 },
    );

    await conversation.evict();
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Objection." }]] }, { to: lawyer });
    expect(await conversation.ended(turnId)).toMatchObject({ agentId: lawyer, answer: "Objection." });
    const [asked] = await play.requests(1);
    expect(asked?.body.messages[0]?.content).toBe("You are the lawyer.");
    expect((await conversation.messages()).at(-1)).toMatchObject({ agentId: lawyer, content: "Objection." });

    const refused = await ask(conversation, "POST", "/turns", { content: "Hello", to: "nobody" });
    expect(refused).toMatchObject([422, { code: "INVALID_INPUT", errors: [{ path: "/to" }] }]);
    expect(JSON.stringify(refused)).toContain(lawyer);
    client.send({ type: "turn.start", id: "x", content: "Hello", to: "nobody" });
    await client.frame("error", ({ data }) => data.ref === "x" && data.code === "INVALID_INPUT");

    const over = new Play({ replies: [[{ text: "Sustained." }]] });
    client.send({ type: "turn.start", id: "y", content: over.content, to: guide });
    await client.frame("message.completed", ({ data }) => data.agentId === guide);
    const [second] = await over.requests(1);
    const told = (second?.body.messages ?? []).map(({ content }) => content).join("\n");
    expect(told).toContain(`- The agent "${lawyer}": "Objection."`);

    expect(await leave(conversation, `agent/${lawyer}`)).toEqual([204, null]);
    expect(await ask(conversation, "POST", "/turns", { content: "Hello", to: lawyer })).toMatchObject([
      422,
      {},
    ]);
  });

  test("PARTY-6 of another project is refused, an unknown one is not found, and RPC does the same", async () => {
    const conversation = await createConversation(guide);
    const elsewhere = await request("/api/agents", {
      method: "POST",
      body: JSON.stringify({ persona: "test/plain", projectIds: ["elsewhere"] }),
    });
    const { id } = await elsewhere.json<{ id: string }>();
    expect(await join(conversation, { type: "agent", id })).toMatchObject([403, { code: "FORBIDDEN" }]);
    expect(await join(conversation, { type: "agent", id: "nobody" })).toMatchObject([
      404,
      { code: "NOT_FOUND" },
    ]);
    // SAFETY: the class has these methods; the type of a stub wraps what they return.
    const api = conversation.stub as unknown as ConversationApi;
    expect(await api.addParticipant(ADA, { type: "agent", id: lawyer })).toMatchObject({ ok: true });
    expect(await api.addParticipant(BEN, { type: "agent", id })).toMatchObject({
      error: { code: "NOT_FOUND" },
    });
    expect(await api.removeParticipant(ADA, { type: "agent", id: lawyer })).toEqual({
      ok: true,
      value: null,
    });
    expect(await api.removeParticipant(ADA, { type: "agent", id: guide })).toMatchObject({
      error: { code: "CONFLICT" },
    });
    const journal = await conversation.journal();
    expect(journal.map(({ type }) => type)).toEqual([
      "conversation.started",
      "participant.joined",
      "participant.left",
    ]);
  });
});
