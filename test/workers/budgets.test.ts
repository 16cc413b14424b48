/** Budgets on the real Worker: every entrance sets them, and every reader sees the work that they stop. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { LiveConversation } from "../../src/client/state.ts";
import { maxOutputTokens } from "../../src/model/spending.ts";
import type { AgentView } from "../../src/protocol/agent-api.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import type { ConversationView } from "../../src/protocol/conversation-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  partialText,
  request,
  TestConversation,
} from "./world.ts";

const systemPrompt = "You are a test.";
const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
const hello = { replies: [[{ text: "Hello." }, { usage }]] };

let plain: string;
let priced: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
  priced = await createAgent("test/priced");
});

afterEach(checkInvariants);

async function ask(method: string, path: string, body: object) {
  const response = await request(path, { method, body: JSON.stringify(body) });
  const answer = await response.json<{ id: string; code?: string; errors?: { path: string }[] }>();
  return { ...answer, status: response.status };
}

async function limited(budget: Budget, agentId = plain): Promise<TestConversation> {
  const { status, id } = await ask("POST", "/api/conversations", { agentId, budget });
  expect(status).toBe(201);
  return new TestConversation(id);
}

async function patch({ path }: TestConversation, body: object) {
  const response = await request(path, { method: "PATCH", body: JSON.stringify(body) });
  return [response.status, await response.json<ConversationView & { code?: string }>()] as const;
}

const isOver = (turnId: string) => (state: LiveConversation) =>
  state.turns.some(({ id, status }) => id === turnId && status !== "active");

/** Sends a message that must fail at once, for lack of budget, without a request to the provider. */
async function stopped(conversation: TestConversation, more: { budget?: Budget } = {}): Promise<string> {
  const play = new Play(hello);
  const answer = await conversation.say(play.content, more);
  expect(answer).toMatchObject({ status: "failed" });
  expect(await conversation.turn(answer.turnId)).toMatchObject({
    status: "failed",
    error: { code: "BUDGET_EXCEEDED", retriable: false },
    spent: { tokens: 0, modelCalls: 0 },
  });
  expect(await play.requests()).toEqual([]);
  return answer.turnId;
}

describe("H4 a budget over HTTP and WebSocket", () => {
  test("BUDGET-1 BUDGET-2 is given when a conversation is created: its second call is not made, and every reader learns why", async () => {
    const conversation = await limited({ modelCalls: 1 });
    expect(await conversation.view()).toMatchObject({
      budget: { modelCalls: 1 },
      budgetLeft: { modelCalls: 1 },
      spent: { modelCalls: 0 },
    });
    const client = await conversation.connect();
    const first = await conversation.play(hello);
    await client.until(isOver(first.turnId));
    const second = await stopped(conversation);
    await client.until(isOver(second));
    expect(client.framesOf("budget.exceeded")).toMatchObject([
      {
        turnId: second,
        data: { scope: "conversation", limit: "modelCalls", allowed: 1, used: 1, needed: 1 },
      },
    ]);
    expect(client.framesOf("turn.failed")).toMatchObject([
      { turnId: second, data: { error: { code: "BUDGET_EXCEEDED" }, budgetLeft: { modelCalls: 0 } } },
    ]);
    expect(client.state.conversation).toMatchObject({ budgetLeft: { modelCalls: 0 } });
    expect(await conversation.view()).toMatchObject({
      budgetLeft: { modelCalls: 0 },
      spent: { tokens: 110, modelCalls: 1 },
    });
    const late = await conversation.connect();
    await late.until(isOver(second));
    const journal = await conversation.journal();
    expect(journal.filter(({ type }) => type === "budget.exceeded")).toMatchObject([{ turnId: second }]);
  });

  test("BUDGET-2 is changed and removed by PATCH, and a lower one aborts the call that no longer fits", async () => {
    const conversation = await limited({ modelCalls: 0 });
    await stopped(conversation);
    expect(await patch(conversation, { budget: { modelCalls: 9 } })).toMatchObject([
      200,
      { budget: { modelCalls: 9 } },
    ]);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play({
      replies: [[{ text: "Half" }, { gate: "never" }, { text: "." }]],
    });
    await play.reached("never");
    expect((await patch(conversation, { budget: { tokens: 10 } }))[0]).toBe(200);
    await play.closes(1);
    await client.until(isOver(turnId));
    expect((await conversation.turn(turnId)).error?.code).toBe("BUDGET_EXCEEDED");
    const [status, view] = await patch(conversation, { budget: null });
    expect(status).toBe(200);
    expect(view).not.toHaveProperty("budget");
    const free = await conversation.play(hello);
    await client.until(isOver(free.turnId));
    expect((await conversation.turn(free.turnId)).answer).toBe("Hello.");
    await play.open("never");
  });

  test("BUDGET-1 is given with a message; its stream ends with budget.exceeded and turn.failed", async () => {
    const conversation = await limited({ modelCalls: 9 });
    const id = await stopped(conversation, { budget: { tokens: 100 } });
    expect(await conversation.turn(id)).toMatchObject({ budget: { tokens: 100 } });
    const body = JSON.stringify({ content: new Play(hello).content, budget: { modelCalls: 0 } });
    const stream = await conversation.events("/turns", { method: "POST", body });
    const types = (await stream.rest()).map(({ type }) => type);
    expect(types.slice(-2)).toEqual(["budget.exceeded", "turn.failed"]);
    const { turnId } = await conversation.play(hello, { budget: { modelCalls: 1 } });
    expect((await conversation.ended(turnId)).status).toBe("completed");
  });

  test("BUDGET-1 is given with turn.start; an invalid budget gets an error frame", async () => {
    const conversation = await limited({ modelCalls: 9 });
    const client = await conversation.connect();
    const { content } = new Play(hello);
    client.send({ type: "turn.start", id: "poor", content, budget: { modelCalls: 0 } });
    const failed = await client.frame("turn.failed");
    expect(failed.data.error.code).toBe("BUDGET_EXCEEDED");
    expect(client.framesOf("budget.exceeded")).toMatchObject([{ data: { scope: "turn" } }]);
    const hostile = JSON.stringify({ type: "turn.start", id: "bad", content, budget: { tokens: -1 } });
    client.sendText(hostile);
    expect((await client.frame("error")).data).toMatchObject({ code: "INVALID_SIGNAL", ref: "bad" });
    expect(await conversation.view()).toMatchObject({ spent: { modelCalls: 0 } });
  });

  test("BUDGET-2 of an agent's persona answers 402 on /v1", async () => {
    const agent = await createAgent({
      identity: { systemPrompt, modelProfileId: "test/scripted" },
      budget: { modelCalls: 0 },
    });
    const content = new Play(hello).content;
    const body = JSON.stringify({ model: agent, messages: [{ role: "user", content }] });
    const response = await request("/v1/chat/completions", { method: "POST", body });
    expect(response.status).toBe(402);
    const { error } = await response.json<{ error: { code: string; message: string } }>();
    expect(error).toMatchObject({ code: "budget_exceeded", message: expect.stringContaining("persona") });
  });
});

describe("H4 a budget that is refused", () => {
  const HOSTILE: unknown[] = [
    {},
    [],
    "1000",
    7,
    true,
    { tokens: -1 },
    { tokens: 1.5 },
    { tokens: "1" },
    { tokens: null },
    { tokens: 1e13 },
    { usd: -0.01 },
    { usd: 1e7 },
    { modelCalls: 1e10 },
    { toolCalls: [] },
    { tokens: 1, dollars: 2 },
    { tokens: { valueOf: 1 } },
  ];

  test("BODY-2 a hostile budget gets 422 at each entrance, and changes no state", async () => {
    const conversation = await limited({ tokens: 50_000 });
    const before = JSON.stringify(await conversation.view());
    const { content } = new Play(hello);
    for (const budget of HOSTILE) {
      for (const [method, path, body] of [
        ["POST", "/api/conversations", { agentId: plain, budget }],
        ["PATCH", conversation.path, { budget }],
        ["POST", `${conversation.path}/turns`, { content, budget }],
      ] as const) {
        const { status, code } = await ask(method, path, body);
        expect([status, code], `${method} ${path} ${JSON.stringify(budget)}`).toEqual([422, "INVALID_INPUT"]);
      }
    }
    for (const body of [{ agentId: plain, budget: null }]) {
      expect((await ask("POST", "/api/conversations", body)).status).toBe(422);
    }
    expect((await ask("POST", `${conversation.path}/turns`, { content, budget: null })).status).toBe(422);
    expect(JSON.stringify(await conversation.view())).toBe(before);
  });

  test("BUDGET-4 a limit in dollars needs a price of each model, at every entrance", async () => {
    const usd = { usd: 1 };
    const conversation = await limited({ tokens: 50_000 });
    const { content } = new Play(hello);
    for (const [method, path, body] of [
      ["POST", "/api/conversations", { agentId: plain, budget: usd }],
      ["PATCH", conversation.path, { budget: usd }],
      ["POST", `${conversation.path}/turns`, { content, budget: usd }],
    ] as const) {
      expect(await ask(method, path, body), method).toMatchObject({ status: 422, code: "INVALID_INPUT" });
    }
    const client = await conversation.connect();
    client.send({ type: "turn.start", id: "usd", content, budget: usd });
    expect((await client.frame("error")).data).toMatchObject({ code: "INVALID_INPUT", ref: "usd" });
    const dear = await limited({ usd: 10 }, priced);
    const { turnId } = await dear.play(hello);
    expect(await dear.ended(turnId)).toMatchObject({ status: "completed", spent: { usd: 0.021 } });
    expect(await dear.view()).toMatchObject({ budgetLeft: { usd: 9.979 } });
  });
});

test("BUDGET-6 a conversation does not begin with a budget that no call fits", async () => {
  const reply = maxOutputTokens({});
  const begin = (agentId: string, budget: object) => ask("POST", "/api/conversations", { agentId, budget });
  for (const [agentId, budget] of [
    [plain, { tokens: 1 }],
    [plain, { tokens: reply }],
    [priced, { usd: 0.000001 }],
  ] as const) {
    const [limit] = Object.keys(budget);
    expect(await begin(agentId, budget), JSON.stringify(budget)).toMatchObject({
      status: 422,
      code: "INVALID_INPUT",
      errors: [
        {
          path: `/budget/${limit}`,
          message: expect.stringMatching(/^The limit is too low for a model call\. .* Allow more/),
        },
      ],
    });
  }
  expect((await begin(plain, { tokens: reply + 1 })).status).toBe(201);
});

describe("H4 the ledger", () => {
  test("LEDGER-3 BUDGET-1 a hard stop survives a crash and an eviction: the lost call is charged, and no other call starts", async () => {
    const conversation = await limited({ tokens: maxOutputTokens({}) + 2_000 });
    const { play, turnId } = await conversation.play({
      replies: [[{ text: "Half" }, { gate: "never" }, { text: "." }]],
    });
    await play.reached("never");
    await crash();
    const client = await conversation.connect();
    await client.until(isOver(turnId));
    const turn = await conversation.turn(turnId);
    expect(turn).toMatchObject({
      error: { code: "BUDGET_EXCEEDED" },
      spent: { modelCalls: 1, estimated: true },
    });
    expect(turn.spent.tokens).toBeGreaterThan(maxOutputTokens({}));
    expect(await play.requests()).toHaveLength(1);
    client.close();
    await conversation.evict();
    await stopped(conversation);
    expect((await conversation.view()).spent).toMatchObject({ tokens: turn.spent.tokens, modelCalls: 1 });
    await play.open("never");
  });

  test("LEDGER-2 Stop after 100 deltas: the ledger is above zero", async () => {
    const conversation = await limited({ tokens: 50_000 });
    const words = Array.from({ length: 100 }, (_, n) => ({ text: `word${n} ` }));
    const { play, turnId } = await conversation.play({ replies: [[...words, { gate: "never" }]] });
    const client = await conversation.connect();
    await play.reached("never");
    await client.until((state) => partialText(state)?.includes("word99") ?? false);
    expect((await conversation.stop(turnId))[0]).toBe(200);
    const { spent, usage: counted, calls } = await conversation.turn(turnId);
    expect(spent).toMatchObject({ modelCalls: 1, estimated: true });
    expect(calls[0]?.estimated?.outputTokens).toBeGreaterThan(90);
    expect(counted).toBeNull();
    const view = await conversation.view();
    expect(view.spent?.tokens).toBe(spent.tokens);
    expect(view.budgetLeft).toEqual({ tokens: 50_000 - spent.tokens });
    await play.open("never");
  });

  test("LEDGER-2 a call without usage settles as estimated, a counted one does not", async () => {
    const conversation = await limited({ tokens: 50_000 });
    const silent = await conversation.play({ replies: [[{ text: "An answer of some words." }]] });
    const guessed = await conversation.ended(silent.turnId);
    expect(guessed.spent).toMatchObject({ modelCalls: 1, estimated: true });
    expect(guessed.spent.tokens).toBeGreaterThan(0);
    const counted = await conversation.play(hello);
    expect((await conversation.ended(counted.turnId)).spent).toEqual({
      tokens: 110,
      usd: 0,
      toolCalls: 0,
      modelCalls: 1,
    });
    expect((await conversation.view()).spent?.tokens).toBe(guessed.spent.tokens + 110);
  });
});

describe("H4 the budget of an agent", () => {
  const persona = { identity: { systemPrompt, modelProfileId: "test/scripted" } };

  async function agentWith(budget: object): Promise<string> {
    const { status, id } = await ask("POST", "/api/agents", { persona, budget });
    expect(status).toBe(201);
    return id;
  }

  async function agentView(id: string): Promise<AgentView> {
    const response = await request(`/api/agents/${id}`);
    return response.json<AgentView>();
  }

  /** Waits until the agent's conversations have returned their unused shares, and returns their usage. */
  async function settled(id: string): Promise<AgentView["spent"]> {
    return vi.waitFor(
      async () => {
        const { spent, leased } = await agentView(id);
        expect(leased).toEqual({ tokens: 0, usd: 0, modelCalls: 0 });
        return spent;
      },
      { timeout: 20_000 },
    );
  }

  const exceededIn = async (conversation: TestConversation) =>
    (await conversation.journal()).flatMap(({ type, data }) => (type === "budget.exceeded" ? [data] : []));

  test("LEASE-1 LEASE-5 LEASE-7 LEASE-8 limits all of its conversations together, and shows used and leased amounts", async () => {
    const agent = await agentWith({ modelCalls: 3 });
    expect(await agentView(agent)).toMatchObject({ budget: { modelCalls: 3 } });
    const [one, two] = [await createConversation(agent), await createConversation(agent)];
    for (const conversation of [one, two, one]) {
      const { turnId } = await conversation.play(hello);
      expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Hello." });
    }
    for (const conversation of [one, two]) {
      const { play, turnId } = await conversation.play(hello);
      expect(await conversation.ended(turnId)).toMatchObject({
        status: "failed",
        error: { code: "BUDGET_EXCEEDED", message: expect.stringContaining("the agent is 3 model calls") },
        spent: { modelCalls: 0 },
      });
      expect(await play.requests()).toEqual([]);
      expect(await exceededIn(conversation)).toEqual([
        { scope: "agent", limit: "modelCalls", allowed: 3, used: 3, needed: 1 },
      ]);
    }
    expect(await settled(agent)).toEqual({ tokens: 330, usd: 0, modelCalls: 3 });
    const [status] = [(await ask("PATCH", `/api/agents/${agent}`, { budget: { modelCalls: 4 } })).status];
    expect(status).toBe(200);
    const { turnId } = await two.play(hello);
    expect((await two.ended(turnId)).status).toBe("completed");
    expect((await ask("PATCH", `/api/agents/${agent}`, { budget: null })).status).toBe(200);
    const free = await one.play(hello);
    expect((await one.ended(free.turnId)).status).toBe("completed");
    expect(await agentView(agent)).not.toHaveProperty("budget");
  });

  test("its usage and leases are visible to authors, operators and admins", async () => {
    const agent = await agentWith({ modelCalls: 3 });
    const conversation = await createConversation(agent);
    const { turnId } = await conversation.play(hello);
    await conversation.ended(turnId);
    await settled(agent);
    const seen = async (role: string) => {
      const principal = { subject: "ben", tenant: "test", roles: [role] };
      const [view, usage] = [
        await request(`/api/agents/${agent}`, {}, principal),
        await request(`/api/agents/${agent}/usage`, {}, principal),
      ];
      expect(view.status).toBe(200);
      const { spent, leased, budget } = await view.json<AgentView>();
      expect(budget).toEqual({ modelCalls: 3 });
      return [usage.status, spent?.modelCalls, leased?.modelCalls];
    };
    expect(await seen("member")).toEqual([403, undefined, undefined]);
    for (const role of ["author", "operator", "admin"]) expect(await seen(role)).toEqual([200, 1, 0]);
    const list = await request(
      "/api/agents?limit=100",
      {},
      { subject: "ben", tenant: "test", roles: ["member"] },
    );
    expect(await list.text()).not.toMatch(/"spent"|"leased"/);
  });

  test("LEASE-1 LEASE-8 simultaneous conversations share it: they make no more calls than it allows", async () => {
    const agent = await agentWith({ modelCalls: 5 });
    const rooms = await Promise.all(Array.from({ length: 8 }, () => createConversation(agent)));
    const plays = await Promise.all(rooms.map((room) => room.play(hello)));
    const turns = await Promise.all(plays.map(({ turnId }, index) => rooms[index]?.ended(turnId)));
    const made = (await Promise.all(plays.map(({ play }) => play.requests()))).flat();
    expect(made.length).toBeLessThanOrEqual(5);
    expect(turns.filter((turn) => turn?.status === "completed")).toHaveLength(made.length);
    expect(await settled(agent)).toEqual({ tokens: 110 * made.length, usd: 0, modelCalls: made.length });
  });

  test("LEASE-2 LEASE-8 survives crashes of conversation and agent: each amount is counted once", async () => {
    const agent = await agentWith({ modelCalls: 2 });
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play({
      replies: [
        {
          attempts: [
            [{ text: "Half" }, { gate: "never" }],
            [{ text: "Whole." }, { usage }],
          ],
        },
      ],
    });
    await play.reached("never");
    await crash();
    expect(await conversation.ended(turnId)).toMatchObject({
      answer: "Whole.",
      spent: { modelCalls: 2, estimated: true },
    });
    const { tokens } = (await conversation.view()).spent ?? {};
    expect(await settled(agent)).toEqual({ tokens, usd: 0, modelCalls: 2 });
    await crash();
    const last = await conversation.play(hello);
    expect((await conversation.ended(last.turnId)).error?.code).toBe("BUDGET_EXCEEDED");
    expect(await settled(agent)).toMatchObject({ modelCalls: 2 });
    await play.open("never");
  });

  test("LEASE-6 LEASE-7 a turn with tools asks for several calls at once, and returns the rest", async () => {
    const agent = await createAgent("test/handy");
    expect((await ask("PATCH", `/api/agents/${agent}`, { budget: { modelCalls: 100 } })).status).toBe(200);
    const conversation = await createConversation(agent);
    const { turnId } = await conversation.play({
      replies: [
        [{ call: "double", input: { n: 1 } }, { usage }],
        [{ call: "double", input: { n: 2 } }, { usage }],
        [{ text: "Done." }, { usage }],
      ],
    });
    expect(await conversation.ended(turnId)).toMatchObject({ answer: "Done.", spent: { modelCalls: 3 } });
    const leases = (await conversation.journal()).filter(({ type }) => type === "budget.leased");
    expect(leases[0]).toMatchObject({ data: { agentId: agent, modelCalls: 4 } });
    expect(leases.length).toBeLessThanOrEqual(2);
    expect(await settled(agent)).toEqual({ tokens: 330, usd: 0, modelCalls: 3 });
  });

  test("LEASE-9 an agent without a budget grants no lease", async () => {
    const conversation = await createConversation(plain);
    const { turnId } = await conversation.play(hello);
    await conversation.ended(turnId);
    expect((await conversation.journal()).map(({ type }) => type)).not.toContain("budget.leased");
    const view = await agentView(plain);
    for (const member of ["budget", "spent", "leased"]) expect(view).not.toHaveProperty(member);
  });

  test("BUDGET-4 BODY-2 is refused if it is invalid or a price is missing, and from members", async () => {
    for (const budget of [{}, [], 7, "1", { tokens: -1 }, { tokens: 1.5 }, { toolCalls: 1 }, { usd: 1 }]) {
      expect(await ask("POST", "/api/agents", { persona, budget }), JSON.stringify(budget)).toMatchObject({
        status: 422,
        code: "INVALID_INPUT",
      });
      expect(await ask("PATCH", `/api/agents/${plain}`, { budget })).toMatchObject({ status: 422 });
    }
    expect((await ask("POST", "/api/agents", { persona, budget: null })).status).toBe(422);
    const body = JSON.stringify({ budget: { tokens: 1 } });
    const member: Principal = { subject: "mel", tenant: "test", roles: ["member"] };
    const refused = await request(`/api/agents/${plain}`, { method: "PATCH", body }, member);
    expect(refused.status).toBe(403);
    const dear = await ask("POST", "/api/agents", { persona: "test/priced", budget: { usd: 10 } });
    expect(dear.status).toBe(201);
    expect(await ask("PATCH", `/api/agents/${dear.id}`, { persona: "test/plain" })).toMatchObject({
      status: 422,
      code: "INVALID_INPUT",
    });
    const conversation = await createConversation(dear.id);
    const { turnId } = await conversation.play(hello);
    expect((await conversation.ended(turnId)).status).toBe("completed");
    expect(await settled(dear.id)).toEqual({ tokens: 110, usd: 0.021, modelCalls: 1 });
  });
});
