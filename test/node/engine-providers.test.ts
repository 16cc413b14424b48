/** The engine over real servers: formats, gateway, attempts, fallbacks, and several providers in one conversation. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createModelGateway, type ModelProfile, trustedHosts } from "../../src/adapters/index.ts";
import {
  type ConversationTurn,
  createConversationEngine,
  createProviderAdapter,
  InMemoryConversationStore,
  type NewMessage,
  type ProviderAdapterOptions,
  ProviderCallError,
  type ProviderStreamChunk,
} from "../../src/engine/index.ts";
import { systemClock } from "../../src/ports/system.ts";
import { claudeReply } from "../support/claude-reply.ts";
import { KEY } from "../support/gateway-calls.ts";
import {
  errorReply,
  jsonReply,
  newGate,
  type OpenAIServer,
  type Reply,
  startOpenAIServer,
  textReply,
  toolReply,
} from "../support/openai-server.ts";

let server: OpenAIServer;
/** A stub of the AI binding: it answers over HTTP as the platform does. */
let workersAI: OpenAIServer;
let anthropic: OpenAIServer;

beforeAll(async () => {
  const servers = [startOpenAIServer(), startOpenAIServer(), startOpenAIServer()] as const;
  [server, workersAI, anthropic] = await Promise.all(servers);
});

afterAll(() => Promise.all([server.close(), workersAI.close(), anthropic.close()]));

const usage = { usage: { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 } };
const withUsage = (reply: Reply): Reply =>
  reply.kind === "stream" ? { ...reply, steps: [...reply.steps, usage] } : reply;
const user = (content: unknown): NewMessage => ({ role: "user", content });

const add = {
  name: "add",
  description: "Adds two numbers.",
  inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
};

function setUp(options: Partial<ProviderAdapterOptions> = {}) {
  const profile: ModelProfile = {
    ...{ provider: "openai", modelId: "gpt-test", baseUrl: server.baseUrl },
    ...{ costPer1kInput: 2, costPer1kOutput: 8, parameters: { temperature: 1, seed: 7 } },
  };
  const gateway = createModelGateway({
    secret: (name) => (name === "OPENAI_API_KEY" ? KEY : undefined),
    fetch,
    clock: systemClock,
    trustedHosts: trustedHosts({ allowedHosts: [new URL(server.baseUrl).origin] }),
    ai: {
      run: (model, input) =>
        fetch(`${workersAI.baseUrl}/${model}`, { method: "POST", body: JSON.stringify(input) }),
    },
  });
  const resilience = { baseBackoffMs: 1, ...options.resilience };
  const openai = createProviderAdapter({ profile, gateway, ...options, resilience });
  const cloudflare = createProviderAdapter({
    profile: { provider: "workers-ai", modelId: "llama" },
    gateway,
  });
  const claude = createProviderAdapter({
    profile: { provider: "anthropic", modelId: "claude-test", baseUrl: anthropic.baseUrl },
    gateway,
  });
  const store = new InMemoryConversationStore();
  const engine = createConversationEngine({
    defaultAgent: "helper",
    store,
    providers: { openai, cloudflare, anthropic: claude },
    defaultModels: { openai: "gpt-test", cloudflare: "llama", anthropic: "claude-test" },
  });
  const started = async (...initialMessages: NewMessage[]) =>
    (await engine.createConversation({ initialMessages })).id;
  const failing = async (conversationId: string, signal?: AbortSignal): Promise<ConversationTurn> => {
    const options = { conversationId, ...(signal === undefined ? {} : { signal }) };
    const run = expect(engine.runTurn(options)).rejects;
    await (signal === undefined ? run.toBeInstanceOf(ProviderCallError) : run.toBe("enough"));
    const [turn] = await store.listTurns(conversationId, { limit: 1, order: "desc" });
    return turn ?? expect.unreachable("no turn");
  };
  return { engine, store, started, failing };
}

/** Numbers of requests before a test: `bodies` returns only the requests of the test. */
let [before, beforeAI] = [0, 0];
beforeEach(() => {
  [before, beforeAI] = [server.requests.length, workersAI.requests.length];
});
const bodies = () => server.requests.slice(before).map(({ body }) => body);
const bodiesOfAI = () => workersAI.requests.slice(beforeAI).map(({ body }) => body);

describe("one provider", () => {
  it("C5 C14 a turn is sent in the provider's format, and its reply, usage, cost and outcome are recorded", async () => {
    const { engine, started } = setUp();
    server.reply(withUsage(textReply("Hel", "lo.")));
    const conversationId = await started({ role: "system", content: "Be brief." }, user("Hi"));
    const hints = { parameters: { temperature: 0 } };
    const turn = await engine.runTurn({ conversationId, hints });
    expect(bodies()).toMatchObject([
      {
        model: "gpt-test",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
        temperature: 0,
        seed: 7,
      },
    ]);
    expect(turn.outputMessages).toMatchObject([
      { role: "assistant", content: "Hello.", metadata: { model: "gpt-test", finishReason: "stop" } },
    ]);
    expect(turn.providerCalls).toMatchObject([
      {
        usage: { inputTokens: 1_000, outputTokens: 500 },
        cost: 6,
        outcome: { ok: true, status: 200, errorCategory: "none", attempts: 1 },
        responseMetadata: { finishReason: "stop" },
      },
    ]);
  });

  it("C13 deltas arrive while the server still writes; usage arrives with the last", async () => {
    const { engine, started } = setUp();
    const gate = newGate();
    const steps = [
      { reasoning: "hm" },
      { text: "first" },
      { gate: gate.wait },
      { text: " last" },
      { finish: "stop" },
    ];
    server.reply(withUsage({ kind: "stream", steps }));
    const seen: ProviderStreamChunk[] = [];
    let turn: ConversationTurn | undefined;
    for await (const event of engine.streamTurn({ conversationId: await started(user("Hi")) })) {
      if (event.type === "turn") turn = event.turn;
      else seen.push(event.chunk);
      if (event.type === "chunk" && event.chunk.delta === "first") gate.open();
    }
    expect(seen.map(({ delta }) => delta)).toEqual([
      { type: "reasoning", text: "hm" },
      "first",
      " last",
      undefined,
    ]);
    expect(seen.at(-1)).toMatchObject({ isMessageComplete: true, usage: { outputTokens: 500 } });
    expect(turn?.outputMessages).toMatchObject([{ content: "first last", metadata: { reasoning: "hm" } }]);
  });

  it("tools and tool choice are parameters; calls and results are parts", async () => {
    const { engine, started } = setUp();
    server.reply(toolReply({ id: "c1", name: "add", arguments: { a: 1, b: 2 } }), textReply("3"));
    const conversationId = await started(user("1 + 2?"));
    const parameters = { tools: [add], toolChoice: "auto" };
    const first = await engine.runTurn({ conversationId, hints: { parameters } });
    const call = { type: "tool-call", id: "c1", name: "add", arguments: { a: 1, b: 2 } };
    expect(first.outputMessages).toMatchObject([{ content: [call] }]);
    const result = { type: "tool-result", id: "c1", name: "add", result: 3 };
    await engine.appendMessages(conversationId, [{ role: "tool", content: [result] }]);
    const second = await engine.runTurn({
      conversationId,
      hints: { parameters },
      triggerType: "tool_result",
    });
    expect(second.inputMessages).toMatchObject([{ role: "tool" }]);
    expect(bodies()).toMatchObject([
      { tools: [{ function: { name: "add", parameters: add.inputSchema } }], tool_choice: "auto" },
      {
        messages: [
          { role: "user" },
          {
            role: "assistant",
            tool_calls: [{ id: "c1", function: { name: "add", arguments: '{"a":1,"b":2}' } }],
          },
          { role: "tool", tool_call_id: "c1", content: "3" },
        ],
      },
    ]);
    expect(bodies()[0]).not.toHaveProperty("toolChoice");
  });

  it.each([
    [{ tools: [{ name: "add" }] }, "INVALID_INPUT", "/parameters/tools/0/description"],
    [{ toolChoice: 7 }, "INVALID_INPUT", "/parameters/toolChoice"],
    [{ temperature: Number.NaN }, "INVALID_INPUT", "/parameters"],
  ])("a request that makes no sense fails without an attempt: %#", async (parameters, code, path) => {
    const { engine, store, started } = setUp();
    const conversationId = await started(user("Hi"));
    await expect(engine.runTurn({ conversationId, hints: { parameters } })).rejects.toMatchObject({ code });
    expect(await store.listTurns(conversationId)).toMatchObject([
      {
        status: "failed",
        error: { code, message: expect.stringContaining(path), provider: "openai" },
        providerCalls: [{ outcome: { ok: false, errorCategory: "validation", attempts: 0 } }],
      },
    ]);
    expect(bodies()).toEqual([]);
  });

  it("C6 C20 a refusal: one attempt, its category and status in the record, and no key anywhere", async () => {
    const { failing, started } = setUp();
    server.reply(errorReply(401, { message: `Incorrect API key: ${KEY}` }, { "x-request-id": "req_9" }));
    const turn = await failing(await started(user("Hi")));
    expect(turn).toMatchObject({
      status: "failed",
      error: { code: "MODEL_FAILED", provider: "openai", raw: { category: "auth", status: 401 } },
      providerCalls: [
        { requestId: "req_9", outcome: { ok: false, errorCategory: "auth", status: 401, attempts: 1 } },
      ],
    });
    expect(JSON.stringify(turn)).not.toContain(KEY);
  });

  it("C20 temporary failures are retried, and the record counts the attempts of the one call", async () => {
    const { engine, started } = setUp();
    const limits = { "x-ratelimit-remaining-requests": "5" };
    server.reply(
      errorReply(429, { message: "Slow down." }, { "retry-after-ms": "1" }),
      jsonReply({ choices: [{ message: { content: "Hi." }, finish_reason: "stop" }] }, 200, limits),
    );
    const { providerCalls } = await engine.runTurn({ conversationId: await started(user("Hi")) });
    expect(providerCalls).toMatchObject([
      { outcome: { ok: true, attempts: 2, status: 200, rateLimitFeedback: { remainingRequests: 5 } } },
    ]);
    expect(bodies()).toHaveLength(2);
  });

  it("C13 C20 text that streamed before an attempt failed is void, and is not in the message", async () => {
    const { engine, started } = setUp();
    server.reply({ kind: "stream", steps: [{ text: "half a" }, { cut: true }] }, textReply("Whole."));
    const chunks: ProviderStreamChunk[] = [];
    let turn: ConversationTurn | undefined;
    for await (const event of engine.streamTurn({ conversationId: await started(user("Hi")) })) {
      if (event.type === "turn") turn = event.turn;
      else chunks.push(event.chunk);
    }
    expect(chunks.map(({ delta, isReset }) => isReset ?? delta)).toEqual([
      "half a",
      true,
      "Whole.",
      undefined,
    ]);
    expect(turn).toMatchObject({
      outputMessages: [{ content: "Whole." }],
      providerCalls: [{ outcome: { ok: true, attempts: 2 } }],
    });
  });

  it("a fallback answers under its own name and price, without the request's parameters", async () => {
    const fallback: ModelProfile = {
      ...{ provider: "openai", modelId: "gpt-spare", baseUrl: server.baseUrl },
      ...{ costPer1kInput: 1, costPer1kOutput: 1 },
    };
    const { engine, started } = setUp({ fallbacks: [fallback], resilience: { maxAttempts: 1 } });
    server.reply(errorReply(503, { message: "Overloaded." }), withUsage(textReply("Spare.")));
    const conversationId = await started(user("Hi"));
    const turn = await engine.runTurn({ conversationId, hints: { parameters: { temperature: 0 } } });
    expect(bodies()).toMatchObject([{ model: "gpt-test", temperature: 0 }, { model: "gpt-spare" }]);
    expect(bodies()[1]).not.toHaveProperty("temperature");
    expect(turn).toMatchObject({
      outputMessages: [{ content: "Spare.", metadata: { model: "gpt-spare" } }],
      providerCalls: [
        {
          model: "gpt-test",
          cost: 1.5,
          responseMetadata: { answeredBy: { provider: "openai", model: "gpt-spare" } },
        },
      ],
    });
  });

  it("another model than the profile's has no price", async () => {
    const { engine, started } = setUp();
    server.reply(withUsage(textReply("Hi.")));
    const conversationId = await started(user("Hi"));
    const { providerCalls } = await engine.runTurn({ conversationId, hints: { model: "gpt-other" } });
    expect(bodies()).toMatchObject([{ model: "gpt-other" }]);
    expect(providerCalls[0]).not.toHaveProperty("cost");
    expect(providerCalls[0]?.responseMetadata).toEqual({ finishReason: "stop" });
  });

  it("C22 ENGINE-6 a turn that is cancelled: one attempt, and the server's connection is closed", async () => {
    const { failing, started } = setUp();
    server.reply({ kind: "hang" });
    const abort = new AbortController();
    const running = failing(await started(user("Hi")), abort.signal);
    const request = await server.request(before);
    abort.abort("enough");
    const turn = await running;
    await request.closed;
    expect(turn).toMatchObject({
      status: "cancelled",
      error: { code: "CANCELLED" },
      providerCalls: [{ outcome: { ok: false, errorCategory: "canceled", attempts: 1 } }],
    });
    expect(bodies()).toHaveLength(1);
  });

  it("a turn that is cancelled in its second attempt says that there were two", async () => {
    const { failing, started } = setUp();
    server.reply(errorReply(503, { message: "Busy." }), { kind: "hang" });
    const abort = new AbortController();
    const running = failing(await started(user("Hi")), abort.signal);
    await server.request(before + 1);
    abort.abort("enough");
    const turn = await running;
    expect(turn.providerCalls).toMatchObject([
      { outcome: { ok: false, errorCategory: "canceled", attempts: 2 } },
    ]);
  });
});

describe("several providers", () => {
  it("C19 each turn of a conversation by another provider: its history is translated for each", async () => {
    const { engine, store, started } = setUp();
    const odd = "call:of.another/provider-with-an-id-that-is-longer-than-forty";
    server.reply(toolReply({ id: odd, name: "add", arguments: { a: 1, b: 2 } }), textReply("Bye."));
    workersAI.reply({ kind: "stream", steps: [{ event: { response: "It is 3." } }] });
    const conversationId = await started({ role: "system", content: "Be brief." }, user("1 + 2?"));
    const parameters = { tools: [add] };
    const first = await engine.runTurn({ conversationId, hints: { provider: "openai", parameters } });
    const result = { type: "tool-result", id: odd, name: "add", result: { sum: 3 } };
    await engine.appendMessages(conversationId, [{ role: "tool", name: "add", content: [result] }]);
    const second = await engine.runTurn({ conversationId, hints: { provider: "cloudflare" } });
    await engine.appendMessages(conversationId, [{ role: "other", name: "timer", content: "time is up" }]);
    const third = await engine.runTurn({ conversationId, hints: { provider: "openai" } });

    const sent = expect.stringMatching(/^call:of\.another.{1,41}$/);
    expect(bodiesOfAI()).toMatchObject([
      {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "1 + 2?" },
          {
            role: "assistant",
            tool_calls: [{ id: sent, function: { name: "add", arguments: '{"a":1,"b":2}' } }],
          },
          { role: "tool", content: '{"sum":3}', tool_call_id: sent, name: "add" },
        ],
      },
    ]);
    const [, , call, answer, said, told] = bodies()[1]?.messages ?? [];
    expect(call).toMatchObject({ role: "assistant", content: null });
    // The same id on both sides, cut to the length that OpenAI accepts.
    expect(call?.tool_calls).toMatchObject([{ id: answer?.tool_call_id }]);
    expect(answer?.tool_call_id?.length).toBeLessThanOrEqual(40);
    expect([said, told]).toEqual([
      { role: "assistant", content: "It is 3." },
      { role: "user", content: "[other timer]\n\ntime is up" },
    ]);
    expect([first, second, third].map(({ providerCalls: [one] }) => [one?.provider, one?.model])).toEqual([
      ["openai", "gpt-test"],
      ["cloudflare", "llama"],
      ["openai", "gpt-test"],
    ]);
    const parents = (await store.listTurns(conversationId)).map(
      ({ providerCalls: [one] }) => one?.parentCorrelationId,
    );
    expect(parents).toEqual([undefined, `${conversationId}:${first.id}`, `${conversationId}:${second.id}`]);
  });

  it("C19 OpenAI calls a tool, Anthropic continues and calls another tool, and each sees both in its own format", async () => {
    const { engine, started } = setUp();
    const odd = "call:of.another/provider";
    const thinking = { type: "thinking", thinking: "Twice.", signature: "sealed" };
    server.reply(toolReply({ id: odd, name: "add", arguments: { a: 1, b: 2 } }), textReply("It is 6."));
    anthropic.reply(
      claudeReply("tool_use", thinking, {
        type: "tool_use",
        id: "toolu_1",
        name: "add",
        input: { a: 3, b: 3 },
      }),
      claudeReply("end_turn", { type: "text", text: "Still 6." }),
    );
    const conversationId = await started({ role: "system", content: "Be brief." }, user("(1 + 2) * 2?"));
    const run = (provider: string) =>
      engine.runTurn({ conversationId, hints: { provider, parameters: { tools: [add] } } });
    const tell = (id: string, result: number) =>
      engine.appendMessages(conversationId, [
        { role: "tool", name: "add", content: [{ type: "tool-result", id, name: "add", result }] },
      ]);
    await run("openai");
    await tell(odd, 3);
    const second = await run("anthropic");
    await tell("toolu_1", 6);
    const third = await run("openai");
    await engine.appendMessages(conversationId, [user("Sure?")]);
    const last = await run("anthropic");

    const [asked, askedAgain] = anthropic.requests.map(({ body }) => body);
    const [call, answer] = Array.from(asked?.messages ?? []).slice(1);
    const [use] = Array.from(Object(call).content);
    const id: unknown = Object(use).id;
    // An id that Anthropic accepts, the same on both sides.
    expect(id).toMatch(/^[\w-]+$/);
    expect(asked).toMatchObject({
      model: "claude-test",
      tools: [{ name: "add", input_schema: add.inputSchema }],
    });
    expect(JSON.stringify(asked?.system)).toContain("Be brief.");
    expect(call).toMatchObject({
      role: "assistant",
      content: [{ type: "tool_use", id, name: "add", input: { a: 1, b: 2 } }],
    });
    expect(answer).toMatchObject({ role: "user", content: [{ type: "tool_result", tool_use_id: id }] });
    expect(JSON.stringify(answer)).toContain("3");
    expect(second.outputMessages).toMatchObject([
      { content: [{ type: "tool-call", id: "toolu_1", name: "add", arguments: { a: 3, b: 3 } }] },
    ]);

    expect(bodies()[1]?.messages?.slice(2)).toMatchObject([
      { role: "assistant", tool_calls: [{ id: odd }] },
      { role: "tool", tool_call_id: odd, content: "3" },
      {
        role: "assistant",
        tool_calls: [{ id: "toolu_1", function: { name: "add", arguments: '{"a":3,"b":3}' } }],
      },
      { role: "tool", tool_call_id: "toolu_1", content: "6" },
    ]);
    expect(JSON.stringify(bodies()[1])).not.toContain("sealed");

    // Its own reply goes back to it unchanged.
    expect(askedAgain?.messages?.[3]).toMatchObject({
      role: "assistant",
      content: [thinking, { type: "tool_use", id: "toolu_1", name: "add", input: { a: 3, b: 3 } }],
    });
    expect(JSON.stringify(askedAgain?.messages?.slice(4))).toMatch(/toolu_1.*It is 6\..*Sure\?/);
    expect([third, last].map(({ outputMessages: [said] }) => said?.content)).toEqual([
      "It is 6.",
      "Still 6.",
    ]);
    expect(last.providerCalls).toMatchObject([
      { provider: "anthropic", model: "claude-test", usage: { inputTokens: 5, outputTokens: 9 } },
    ]);
  });
});

describe("PAUSE-1 a reply that its provider pauses", () => {
  const search = { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "x" } };
  const found = { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] };

  it("is continued within its turn, and the paused part is sent back unchanged", async () => {
    const { engine, started } = setUp();
    const before = anthropic.requests.length;
    anthropic.reply(
      claudeReply("pause_turn", { type: "text", text: "I search. " }, search),
      claudeReply("end_turn", found, { type: "text", text: "Found." }),
      claudeReply("end_turn", { type: "text", text: "Bye." }),
    );
    const conversationId = await started(user("Search."));
    const chunks: string[] = [];
    let turn: ConversationTurn | undefined;
    for await (const event of engine.streamTurn({ conversationId, hints: { provider: "anthropic" } })) {
      if (event.type === "turn") turn = event.turn;
      else if (typeof event.chunk.delta === "string") chunks.push(event.chunk.delta);
    }
    expect(chunks.join("")).toBe("I search. Found.");
    expect(turn?.outputMessages).toMatchObject([{ role: "assistant", content: "I search. Found." }]);
    expect(turn?.providerCalls).toMatchObject([
      { usage: { inputTokens: 10, outputTokens: 18 }, outcome: { ok: true, attempts: 2 } },
    ]);
    const [first, second] = anthropic.requests.slice(before).map(({ body }) => body.messages);
    expect(second).toEqual([
      ...(Array.isArray(first) ? first : []),
      { role: "assistant", content: [{ type: "text", text: "I search. " }, search] },
    ]);
    await engine.appendMessages(conversationId, [user("Bye.")]);
    await engine.runTurn({ conversationId, hints: { provider: "anthropic" } });
    expect(anthropic.requests.at(-1)?.body.messages).toMatchObject([
      {},
      {
        role: "assistant",
        content: [{ text: "I search. " }, search, found, { type: "text", text: "Found." }],
      },
      { role: "user" },
    ]);
  });

  it("is not continued for ever", async () => {
    const { engine, started } = setUp();
    const before = anthropic.requests.length;
    anthropic.reply(
      ...Array.from({ length: 11 }, () => claudeReply("pause_turn", { type: "text", text: "More. " })),
    );
    const conversationId = await started(user("Go."));
    const { outputMessages } = await engine.runTurn({ conversationId, hints: { provider: "anthropic" } });
    expect(outputMessages).toMatchObject([
      { content: "More. ".repeat(11), metadata: { finishReason: "other" } },
    ]);
    expect(anthropic.requests.length - before).toBe(11);
  });
});
