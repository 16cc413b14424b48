/** Real models of the AI SDK behind the gateway, and models that misbehave. */
import { createOpenAI } from "@ai-sdk/openai";
import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createWorkersAI } from "workers-ai-provider";
import { adapterFor, collectReply } from "../../src/adapters/index.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { type Call, deltasOf, errorOf, NOW, stream, textOf } from "../support/gateway-calls.ts";
import {
  errorReply,
  newGate,
  type OpenAIServer,
  type Reply,
  startOpenAIServer,
  textReply,
  toolReply,
} from "../support/openai-server.ts";

const format = adapterFor("ai-sdk");
const PROFILE: ModelProfile = { provider: "ai-sdk", modelId: "model" };
const SCHEMA = { type: "object", properties: { city: { type: "string" } } } as const;
const TOOL = { name: "lookup", description: "Looks it up.", inputSchema: SCHEMA };

function context(given: Partial<ModelContext> = {}): ModelContext {
  return { systemInstructions: [], messages: [], tools: [], toolChoice: "auto", ...given };
}

const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
const usage = {
  inputTokens: none,
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};
const finish = (unified: "stop" | "error"): LanguageModelV4StreamPart => {
  return { type: "finish", usage, finishReason: { unified, raw: undefined } };
};

/** A call of this model through the gateway. */
function call(model: LanguageModelV4, given: Partial<ModelContext> = {}, signal?: AbortSignal): Call {
  const messages: ContextMessage[] = [{ role: "user", content: "Hi" }];
  return {
    profile: PROFILE,
    body: format.buildRequest(PROFILE, context({ messages, ...given })),
    ports: { languageModel: (modelId) => (modelId === "model" ? model : undefined) },
    ...(signal === undefined ? {} : { signal }),
  };
}

describe("the AI SDK's own OpenAI provider through the gateway", () => {
  let server: OpenAIServer;

  beforeAll(async () => {
    server = await startOpenAIServer();
  });

  afterAll(() => server.close());

  const openai = () => createOpenAI({ baseURL: server.baseUrl, apiKey: "test-key" });

  test("text of Chat Completions streams, with its usage", async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const reply = textReply("Hello", " world");
    server.reply(reply.kind === "stream" ? { ...reply, steps: [...reply.steps, { usage }] } : reply);
    const deltas = await deltasOf(call(openai().chat("gpt-test")));
    expect(deltas.filter(({ type }) => type === "text")).toHaveLength(2);
    expect(textOf(deltas)).toBe("Hello world");
    expect(deltas).toContainEqual({ type: "usage", usage: expect.objectContaining({ totalTokens: 3 }) });
    expect(deltas.at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test("a round of parallel calls is sent and received", async () => {
    const model = openai().chat("gpt-test");
    server.reply(
      toolReply({ name: "lookup", arguments: { city: "Oslo" } }, { name: "lookup", arguments: {} }),
    );
    const outcome = await collectReply("ai-sdk", stream(call(model, { tools: [TOOL] })));
    if (!outcome.ok) throw new Error(outcome.error.message);
    const { toolCalls, finishReason } = outcome.reply;
    expect(finishReason).toBe("tool_calls");
    const number = server.requests.length;
    server.reply(textReply("Rain."));
    const results = toolCalls.map(
      ({ id }): ContextMessage => ({ role: "tool", content: "rain", toolCallId: id }),
    );
    const messages: ContextMessage[] = [
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "", toolCalls },
      ...results,
    ];
    expect(textOf(await deltasOf(call(model, { messages, tools: [TOOL] })))).toBe("Rain.");
    const sent = await server.request(number);
    expect(sent.body.messages).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [{ id: "call_0" }, { id: "call_1" }] },
      { role: "tool", tool_call_id: "call_0" },
      { role: "tool", tool_call_id: "call_1" },
    ]);
  });

  test("AISDK-2 reasoning of the Responses API goes back encrypted", async () => {
    const model = openai().responses("gpt-5-test");
    const reasoning = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "secret" };
    const message = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [] };
    const response = { id: "resp_1", created_at: 1, model: "gpt-5-test", output: [] };
    const usage = { input_tokens: 1, output_tokens: 2 };
    const events = [
      { type: "response.created", response },
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { ...reasoning, encrypted_content: null },
      },
      { type: "response.output_item.done", output_index: 0, item: reasoning },
      { type: "response.output_item.added", output_index: 1, item: message },
      {
        type: "response.output_text.delta",
        output_index: 1,
        content_index: 0,
        item_id: "msg_1",
        delta: "Hi.",
      },
      { type: "response.output_item.done", output_index: 1, item: message },
      { type: "response.completed", response: { ...response, usage } },
    ];
    server.reply({ kind: "stream", steps: events.map((event) => ({ event })) });
    const outcome = await collectReply("ai-sdk", stream(call(model)));
    if (!outcome.ok) throw new Error(outcome.error.message);
    const { provider, modelId } = PROFILE;
    const { text, native: parts = [] } = outcome.reply;
    const messages: ContextMessage[] = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: text, native: { provider, modelId, parts } },
      { role: "user", content: "More." },
    ];
    const number = server.requests.length;
    server.reply({ kind: "stream", steps: events.map((event) => ({ event })) });
    const body: JsonObject = { providerOptions: { openai: { store: false } } };
    const again = call(model, { messages });
    await deltasOf({ ...again, body: { ...again.body, ...body } });
    expect((await server.request(number)).body.input).toMatchObject([
      { role: "user" },
      { type: "reasoning", encrypted_content: "secret" },
      { role: "assistant" },
      { role: "user" },
    ]);
  });

  test.each([
    [429, { message: "Slow down" }, { "retry-after": "2" }, { category: "rate_limit", retryAfterMs: 2000 }],
    [429, { message: "Spent", code: "insufficient_quota" }, {}, { category: "quota", retriable: false }],
    [401, { message: "No" }, {}, { category: "auth", retriable: false }],
    [404, { message: "No model" }, {}, { category: "not_found" }],
    [400, { message: "Bad" }, {}, { category: "validation" }],
    [503, { message: "Busy" }, {}, { category: "transient", retriable: true }],
  ])("an answer %d %j is a typed error", async (status, error, headers, expected) => {
    server.reply(errorReply(status, error, headers));
    expect(await errorOf(call(openai().chat("gpt-test")))).toMatchObject({
      ...expected,
      status,
      provider: "ai-sdk",
      message: error.message,
    });
  });

  test("a server that cannot be reached, and a reply that breaks off", async () => {
    const away = createOpenAI({ baseURL: "http://127.0.0.1:1/v1", apiKey: "test-key" });
    expect(await errorOf(call(away.chat("gpt-test")))).toMatchObject({
      category: "network",
      retriable: true,
    });
    server.reply({ kind: "stream", steps: [{ text: "Hel" }, { cut: true }] });
    expect(await errorOf(call(openai().chat("gpt-test")))).toMatchObject({ category: "transient" });
  });

  test("an abort reaches the provider, before the reply and in the middle of it", async () => {
    const gate = newGate();
    const replies: Reply[] = [
      { kind: "hang" },
      { kind: "stream", steps: [{ text: "Hel" }, { gate: gate.wait }] },
    ];
    for (const reply of replies) {
      const number = server.requests.length;
      const controller = new AbortController();
      server.reply(reply);
      const running = errorOf(call(openai().chat("gpt-test"), {}, controller.signal));
      const { closed } = await server.request(number);
      controller.abort();
      expect(await running).toMatchObject({ category: "canceled" });
      await closed;
    }
  });
});

describe("workers-ai-provider through the gateway", () => {
  const events = (...payloads: unknown[]) =>
    new Blob(
      [...payloads, "[DONE]"].map((payload) => {
        return `data: ${typeof payload === "string" ? payload : JSON.stringify(payload)}\n\n`;
      }),
    ).stream();

  /** A binding with this answer, and its requests. */
  function bound(answer: () => unknown): { model: LanguageModelV4; asked: JsonObject[] } {
    const asked: JsonObject[] = [];
    const run = async (_model: string, input: JsonObject) => {
      asked.push(input);
      return answer();
    };
    // SAFETY: the provider uses nothing of a binding but `run`.
    const binding = { run } as unknown as Ai;
    return { model: createWorkersAI({ binding })("@cf/test/model"), asked };
  }

  test("streams text", async () => {
    const { model, asked } = bound(() => events({ response: "Hel" }, { response: "lo" }));
    const deltas = await deltasOf(call(model, { systemInstructions: ["Be brief."] }));
    expect(textOf(deltas)).toBe("Hello");
    expect(deltas.at(-1)).toEqual({ type: "finish", reason: "stop" });
    expect(asked).toMatchObject([
      {
        stream: true,
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
      },
    ]);
  });

  test("streams tool calls", async () => {
    const fragment = (given: object) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...given }] } }],
    });
    const { model, asked } = bound(() =>
      events(
        fragment({ id: "c", type: "function", function: { name: "lookup", arguments: "" } }),
        fragment({ function: { arguments: '{"city":"Oslo"}' } }),
        { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
      ),
    );
    expect(await collectReply("ai-sdk", stream(call(model, { tools: [TOOL] })))).toMatchObject({
      ok: true,
      reply: { finishReason: "tool_calls", toolCalls: [{ name: "lookup", arguments: { city: "Oslo" } }] },
    });
    expect(asked).toMatchObject([{ tools: [{ type: "function", function: { name: "lookup" } }] }]);
  });

  test("a model without capacity may be tried again", async () => {
    const { model } = bound(() => {
      throw new Error("3040: Capacity temporarily exceeded, please try again.");
    });
    expect(await errorOf(call(model))).toMatchObject({
      category: "rate_limit",
      retriable: true,
      status: 429,
    });
  });
});

describe("the transport", () => {
  function scripted(parts: LanguageModelV4StreamPart[], onCancel?: () => void): LanguageModelV4 {
    const rest = [...parts];
    return model(async () => ({
      stream: new ReadableStream<LanguageModelV4StreamPart>({
        pull(controller) {
          const part = rest.shift();
          if (part !== undefined) controller.enqueue(part);
          else if (onCancel === undefined) controller.close();
        },
        cancel: () => onCancel?.(),
      }),
    }));
  }

  function model(doStream: LanguageModelV4["doStream"]): LanguageModelV4 {
    const doGenerate = () => Promise.reject(new Error("not streamed"));
    return {
      specificationVersion: "v4",
      provider: "test",
      modelId: "model",
      supportedUrls: {},
      doGenerate,
      doStream,
    };
  }

  test("gives bytes as base64, and addresses as URL objects", async () => {
    const seen: LanguageModelV4CallOptions[] = [];
    const file: LanguageModelV4StreamPart = {
      type: "file",
      mediaType: "image/png",
      data: { type: "data", data: new Uint8Array([0, 255]) },
    };
    const given = scripted([file, finish("stop")]);
    const spying = model(async (options) => {
      seen.push(options);
      return given.doStream(options);
    });
    const image = { type: "image", source: { url: "https://media.example/a.png" } } as const;
    const deltas = await deltasOf(
      call(spying, { messages: [{ role: "user", content: "", parts: [image] }] }),
    );
    const value = { type: "file", mediaType: "image/png", data: { type: "data", data: "AP8=" } };
    expect(deltas).toContainEqual({ type: "native", parts: [{ type: "block", value }] });
    expect(seen[0]?.abortSignal).toBeInstanceOf(AbortSignal);
    expect(seen[0]?.prompt).toEqual([
      {
        role: "user",
        content: [
          { type: "file", data: { type: "url", url: new URL(image.source.url) }, mediaType: "image/png" },
        ],
      },
    ]);
  });

  test("the provider's report of its limits comes first, for a reply and for a refusal", async () => {
    const headers = { "x-ratelimit-remaining-requests": "3", "x-request-id": "req_1" };
    const rateLimit = expect.objectContaining({ remainingRequests: 3 });
    const answers = model(async (options) => ({
      ...(await scripted([finish("stop")]).doStream(options)),
      response: { headers },
    }));
    expect((await deltasOf(call(answers)))[0]).toEqual({
      type: "response",
      response: { requestId: "req_1", rateLimit },
    });
    const refuses = model(async () => {
      const request = { url: "", requestBodyValues: {} };
      throw new APICallError({ message: "Busy", ...request, statusCode: 429, responseHeaders: headers });
    });
    expect(await deltasOf(call(refuses))).toEqual([
      { type: "response", response: { status: 429, requestId: "req_1", rateLimit } },
      { type: "error", error: expect.objectContaining({ category: "rate_limit", requestId: "req_1" }) },
    ]);
  });

  test("DEADLINE-1 a model that falls silent is given up, and its stream given back", async () => {
    const given = newGate();
    const silent = scripted([{ type: "text-delta", id: "0", delta: "Hel" }], given.open);
    const profile = { ...PROFILE, executionConfig: { idleTimeoutMs: 20 } };
    const { ports, ...rest } = call(silent);
    const timed = { ...rest, profile, ports: { ...ports, clock: systemClock } };
    expect(await errorOf(timed)).toMatchObject({ category: "timeout" });
    await given.wait;
  });

  test("an error part ends the reply with its message", async () => {
    const error = new APICallError({
      message: "Busy",
      url: "",
      requestBodyValues: {},
      statusCode: 429,
      responseHeaders: { "retry-after": new Date(NOW + 5000).toUTCString() },
    });
    const parts: LanguageModelV4StreamPart[] = [{ type: "error", error }, finish("error")];
    expect(await errorOf(call(scripted(parts)))).toMatchObject({
      category: "rate_limit",
      status: 429,
      retryAfterMs: 5000,
      message: "Busy",
    });
    expect(await errorOf(call(scripted([{ type: "error", error: "odd" }])))).toMatchObject({
      category: "transient",
      message: "odd",
    });
  });

  test("GATE-2 a stream that breaks after its finish does no harm", async () => {
    const parts: LanguageModelV4StreamPart[] = [finish("stop"), { type: "error", error: "late" }];
    expect((await deltasOf(call(scripted(parts)))).at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test("without models, or without this model, the error names the required option", async () => {
    const { ports: _ports, ...without } = call(scripted([]));
    const error = await errorOf(without);
    expect(error).toMatchObject({ category: "not_found" });
    expect(error.message).toContain("models.languageModels");
    const other = await errorOf({ ...call(scripted([])), profile: { ...PROFILE, modelId: "other" } });
    expect(other.message).toContain('"other"');
    expect(await errorOf({ ...call(scripted([])), body: {} })).toMatchObject({ category: "validation" });
  });

  test("a model that heeds no signal is left, and its stream given back", async () => {
    const controller = new AbortController();
    const given = newGate();
    const hangs = scripted([], given.open);
    const running = errorOf(call(hangs, {}, controller.signal));
    setImmediate(() => controller.abort());
    expect(await running).toMatchObject({ category: "canceled" });
    await given.wait;

    const late = newGate();
    const returnedLate = newGate();
    const slow = model(async (options) => {
      await late.wait;
      return scripted([], returnedLate.open).doStream(options);
    });
    const second = new AbortController();
    const waiting = errorOf(call(slow, {}, second.signal));
    second.abort();
    expect(await waiting).toMatchObject({ category: "canceled" });
    late.open();
    await returnedLate.wait;
  });
});
