/** The gateway against a real server on loopback: one attempt, and every failure as one typed error. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  type AiBinding,
  adapterFor,
  collectReply,
  createModelGateway,
  type GatewayPorts,
  secretsOf,
} from "../../src/adapters/index.ts";
import type { ModelDelta, ModelError, ModelProfile, ProviderId } from "../../src/adapters/types.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import {
  errorReply,
  jsonReply,
  newGate,
  type OpenAIServer,
  startOpenAIServer,
  textReply,
  toolReply,
} from "../support/openai-server.ts";

const KEY = "test-key-0123456789abcdef";
const NOW = Date.UTC(2026, 0, 1);

let server: OpenAIServer;

beforeAll(async () => {
  server = await startOpenAIServer();
});

afterAll(() => server.close());

const clock: Clock = {
  now: () => NOW,
  sleep: async (milliseconds, signal) => {
    await sleep(milliseconds, undefined, signal === undefined ? {} : { signal });
  },
};

function ports(given: Partial<GatewayPorts> = {}): GatewayPorts {
  return { secret: secretsOf({ OPENAI_API_KEY: KEY }), fetch, clock, ...given };
}

interface Call {
  profile?: Partial<ModelProfile>;
  body?: JsonObject;
  ports?: Partial<GatewayPorts>;
  signal?: AbortSignal;
}

const CONTEXT = { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "u" };

function stream(call: Call = {}): AsyncIterable<ModelDelta> {
  const profile: ModelProfile = {
    provider: "openai",
    modelId: "gpt-test",
    baseUrl: server.baseUrl,
    ...call.profile,
  };
  const body = call.body ?? { model: profile.modelId, messages: [], stream: true };
  const request = { profile, body, context: CONTEXT };
  return createModelGateway(ports(call.ports)).stream(request, call.signal ?? new AbortController().signal);
}

async function deltasOf(call: Call = {}): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of stream(call)) deltas.push(delta);
  return deltas;
}

/** The one error of a call, after checking that nothing follows it. */
async function errorOf(call: Call = {}): Promise<ModelError> {
  const deltas = await deltasOf(call);
  const last = deltas.at(-1);
  if (last?.type !== "error") throw new Error(`no error in ${JSON.stringify(deltas)}`);
  expect(deltas.filter(({ type }) => type === "error" || type === "finish")).toHaveLength(1);
  expect(last.error.message).not.toContain(KEY);
  return last.error;
}

const textOf = (deltas: readonly ModelDelta[]) =>
  deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : [])).join("");

describe("a reply of an OpenAI-compatible server", () => {
  test("the request goes out as it is, with the key, and the reply streams back", async () => {
    server.reply(textReply("Hello", " wor", "ld"));
    const body = {
      model: "gpt-test",
      messages: [{ role: "user", content: "Grüße 👋" }],
      stream: true,
      odd: [1],
    };
    const number = server.requests.length;
    const outcome = await collectReply("openai", stream({ body }));
    expect(outcome).toMatchObject({ ok: true, reply: { text: "Hello world", finishReason: "stop" } });
    const sent = await server.request(number);
    expect(sent.body).toEqual(body);
    expect(sent.path).toBe("/v1/chat/completions");
    expect(sent.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      "content-type": "application/json",
    });
  });

  test("A12 the first words arrive before the reply is complete", async () => {
    const gate = newGate();
    server.reply({ kind: "stream", steps: [{ text: "first" }, { gate: gate.wait }, { finish: "stop" }] });
    const deltas = stream()[Symbol.asyncIterator]();
    const seen: ModelDelta[] = [];
    while (textOf(seen) === "") seen.push((await deltas.next()).value);
    gate.open();
    for (let next = await deltas.next(); !next.done; next = await deltas.next()) seen.push(next.value);
    expect(seen.at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test("parallel tool calls and usage", async () => {
    const reply = toolReply({ name: "a", arguments: { x: 1 } }, { name: "b", arguments: {} });
    const usage = { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } };
    server.reply(reply.kind === "stream" ? { ...reply, steps: [...reply.steps, usage] } : reply);
    expect(await collectReply("openai", stream())).toMatchObject({
      ok: true,
      reply: {
        finishReason: "tool_calls",
        toolCalls: [
          { id: "call_0", name: "a", arguments: { x: 1 } },
          { id: "call_1", name: "b", arguments: {} },
        ],
        usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
      },
    });
  });

  test("a JSON body is a reply that was not streamed", async () => {
    server.reply(jsonReply({ id: "r", choices: [{ message: { content: "whole" }, finish_reason: "stop" }] }));
    const outcome = await collectReply("openai", stream());
    expect(outcome).toMatchObject({ ok: true, reply: { text: "whole", providerMessageId: "r" } });
  });

  test("bytes that arrive in any pieces: a character cut in two, line ends of both kinds", async () => {
    const event = `data: ${JSON.stringify({ choices: [{ delta: { content: "東京" }, finish_reason: "stop" }] })}\r\n\r\n`;
    const bytes = new TextEncoder().encode(event);
    const steps = [...bytes].map((byte) => ({ raw: new Uint8Array([byte]) }));
    server.reply({ kind: "stream", steps });
    expect(textOf(await deltasOf())).toBe("東京");
  });

  test("GATE-2 a connection that breaks after the finish reason does no harm", async () => {
    server.reply({ kind: "stream", steps: [{ text: "all" }, { finish: "stop" }, { cut: true }] });
    const deltas = await deltasOf();
    expect(textOf(deltas)).toBe("all");
    expect(deltas.at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test("what follows [DONE] is not waited for", async () => {
    const never = new Promise(() => {});
    const steps = [{ text: "a" }, { finish: "stop" }, { raw: "data: [DONE]\n\n" }, { gate: never }];
    const number = server.requests.length;
    server.reply({ kind: "stream", steps });
    expect((await deltasOf()).at(-1)?.type).toBe("finish");
    await (await server.request(number)).closed;
  });

  test("a consumer that leaves closes the connection", async () => {
    const number = server.requests.length;
    server.reply({ kind: "stream", steps: [{ text: "a" }, { gate: new Promise(() => {}) }] });
    for await (const delta of stream()) if (delta.type === "text") break;
    await (await server.request(number)).closed;
  });
});

describe("failures are one error delta", () => {
  test.each([
    [400, "validation", false],
    [401, "auth", false],
    [402, "quota", false],
    [403, "auth", false],
    [404, "not_found", false],
    [408, "timeout", true],
    [418, "unknown", false],
    [422, "validation", false],
    [429, "rate_limit", true],
    [500, "transient", true],
    [503, "transient", true],
    [529, "transient", true],
  ])("status %i is %s, retriable %s, and is tried once", async (status, category, retriable) => {
    const calls = server.requests.length;
    server.reply(errorReply(status, { message: "As it is." }));
    const error = await errorOf();
    expect(error).toMatchObject({ category, retriable, status, provider: "openai" });
    expect(error.message).toContain("As it is.");
    expect(server.requests.length).toBe(calls + 1);
  });

  test.each([
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after": new Date(NOW + 90_000).toUTCString() }, 90_000],
    [{ "retry-after": new Date(NOW - 90_000).toUTCString() }, 0],
    [{ "retry-after-ms": "250", "retry-after": "7" }, 250],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "-1" }, undefined],
  ])("429 with %j asks to wait %s ms", async (headers, retryAfterMs) => {
    server.reply(errorReply(429, { message: "Slow down." }, headers));
    expect((await errorOf()).retryAfterMs).toBe(retryAfterMs);
  });

  test("429 for a used-up quota is not retriable", async () => {
    server.reply(errorReply(429, { message: "Spent.", code: "insufficient_quota" }));
    expect(await errorOf()).toMatchObject({ category: "quota", retriable: false, status: 429 });
  });

  test("GATE-3 a message that quotes keys is redacted, and a long one is cut", async () => {
    server.reply(
      errorReply(401, {
        message: `Incorrect API key provided: ${KEY}; also sk-abcdef123456. ${"x".repeat(5_000)}`,
      }),
    );
    const { message } = await errorOf();
    expect(message).toContain("Incorrect API key provided: [redacted]");
    expect(message).not.toContain("sk-abc");
    expect(message).toContain("Check the key in OPENAI_API_KEY.");
    expect(message.length).toBeLessThan(700);
  });

  test("an error body without end is read in part only", async () => {
    const number = server.requests.length;
    const steps = [{ raw: "x".repeat(20_000) }, { gate: new Promise(() => {}) }];
    server.reply({ kind: "stream", status: 500, steps });
    expect(await errorOf()).toMatchObject({ category: "transient", status: 500 });
    await (await server.request(number)).closed;
  });

  test.each([
    ["reply", "application/json", 33],
    ["event", "text/event-stream", 9],
  ])("a %s without bounds is refused", async (_what, type, mebibytes) => {
    const body = new Uint8Array(mebibytes * 1024 * 1024).fill(120);
    body.set(new TextEncoder().encode("data: "));
    server.reply({ kind: "body", status: 200, headers: { "content-type": type }, body });
    const error = await errorOf();
    expect(error).toMatchObject({ category: "validation", retriable: false });
    expect(error.message).toMatch(/large/);
  });

  test("a stream that is cut in the middle", async () => {
    server.reply({ kind: "stream", steps: [{ text: "Half of" }, { cut: true }] });
    const deltas = await deltasOf();
    expect(textOf(deltas)).toBe("Half of");
    expect(deltas.at(-1)).toMatchObject({ type: "error", error: { category: "network", retriable: true } });
  });

  test("a stream that ends early but properly", async () => {
    server.reply({
      kind: "body",
      status: 200,
      headers: { "content-type": "text/event-stream" },
      body: 'data: {"choices":[{"delta":{"content":"Hal"}}]}\n\n',
    });
    expect(await errorOf()).toMatchObject({ category: "transient", retriable: true });
  });

  test("an error inside the stream", async () => {
    const event = { error: { message: `Overloaded, ${KEY}`, type: "server_error" } };
    server.reply({ kind: "stream", steps: [{ text: "a" }, { event }, { text: "b" }] });
    expect(await errorOf()).toMatchObject({ category: "transient", message: "Overloaded, [redacted]" });
  });

  test("a web page instead of a model", async () => {
    server.reply({ kind: "body", status: 200, headers: { "content-type": "text/html" }, body: "<html>" });
    expect(await errorOf()).toMatchObject({ category: "validation", retriable: false });
  });

  test("a redirect is not followed", async () => {
    const elsewhere = await startOpenAIServer();
    server.reply({ kind: "body", status: 307, headers: { location: `${elsewhere.baseUrl}/x` }, body: "" });
    expect(await errorOf()).toMatchObject({ category: "validation", status: 307 });
    expect(elsewhere.requests).toHaveLength(0);
    await elsewhere.close();
  });

  test("nobody listens", async () => {
    const gone = await startOpenAIServer();
    await gone.close();
    const error = await errorOf({ profile: { baseUrl: gone.baseUrl } });
    expect(error).toMatchObject({ category: "network", retriable: true });
    expect(error.message).toContain("ECONNREFUSED");
  });

  test.each([
    "ftp://127.0.0.1/v1",
    "not an address",
    "http://",
    "https://user:pass@localhost",
    "http://localhost/v1?key=user:pass",
  ])("the base URL %s is refused", async (baseUrl) => {
    const error = await errorOf({ profile: { baseUrl } });
    expect(error.message).not.toContain("user:pass");
    expect(error).toMatchObject({
      category: "validation",
      retriable: false,
    });
  });

  test.each<ProviderId>(["anthropic", "gemini"])(
    "GATE-1 the provider %s is not built in",
    async (provider) => {
      const error = await errorOf({ profile: { provider } });
      expect(error).toMatchObject({ category: "validation", provider });
      expect(error.message).toContain(provider);
    },
  );

  test("GATE-1 a defect of what is given to the gateway is logged and not told", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const now = () => {
      throw new RangeError("detail");
    };
    server.reply(errorReply(429, { message: "Slow down." }, { "retry-after": "1" }));
    const error = await errorOf({ ports: { clock: { ...clock, now } } });
    expect(error).toMatchObject({ category: "unknown", retriable: false });
    expect(error.message).not.toContain("detail");
    expect(log).toHaveBeenCalledWith(expect.any(RangeError));
    log.mockRestore();
  });
});

describe("aborting", () => {
  const hanging = [
    ["a server that never answers", { kind: "hang" }],
    ["a stream that stops", { kind: "stream", steps: [{ text: "a" }, { gate: new Promise(() => {}) }] }],
  ] as const;

  test.each(hanging)("%s is canceled", async (_name, reply) => {
    const controller = new AbortController();
    const number = server.requests.length;
    server.reply(reply.kind === "hang" ? reply : { ...reply, steps: [...reply.steps] });
    const running = errorOf({ signal: controller.signal });
    const { closed } = await server.request(number);
    controller.abort();
    expect(await running).toMatchObject({ category: "canceled", retriable: false });
    await closed;
  });

  test.each(hanging)("A43 %s times out", async (_name, reply) => {
    const controller = new AbortController();
    const number = server.requests.length;
    server.reply(reply.kind === "hang" ? reply : { ...reply, steps: [...reply.steps] });
    const running = errorOf({ signal: controller.signal });
    await server.request(number);
    controller.abort(new DOMException("Too long.", "TimeoutError"));
    expect(await running).toMatchObject({ category: "timeout", retriable: true });
  });

  test("an AbortSignal.timeout is a timeout", async () => {
    server.reply({ kind: "hang" });
    expect(await errorOf({ signal: AbortSignal.timeout(20) })).toMatchObject({ category: "timeout" });
  });

  test("an aborted signal sends nothing", async () => {
    const calls = server.requests.length;
    expect(await errorOf({ signal: AbortSignal.abort() })).toMatchObject({ category: "canceled" });
    expect(server.requests.length).toBe(calls);
  });
});

describe("keys", () => {
  test("without a key a call of OpenAI itself is not even tried", async () => {
    const fetched: string[] = [];
    const error = await errorOf({
      profile: { baseUrl: undefined } as never,
      ports: {
        secret: () => undefined,
        fetch: async (url) => {
          fetched.push(url);
          return new Response();
        },
      },
    });
    expect(error.category).toBe("auth");
    expect(error.message).toContain("OPENAI_API_KEY");
    expect(fetched).toEqual([]);
  });

  test("a server of one's own needs none", async () => {
    const number = server.requests.length;
    server.reply(textReply("ok"));
    await deltasOf({ ports: { secret: () => undefined } });
    expect((await server.request(number)).headers.authorization).toBeUndefined();
    server.reply(errorReply(401, { message: "Who are you?" }));
    expect((await errorOf({ ports: { secret: () => undefined } })).message).toContain("No key was sent");
  });

  test("a profile names another secret", async () => {
    const number = server.requests.length;
    server.reply(textReply("ok"));
    const secret = secretsOf({ OPENAI_API_KEY: KEY, OTHER_KEY: " spaced \n" });
    await deltasOf({ profile: { apiKeySecret: "OTHER_KEY" }, ports: { secret } });
    expect((await server.request(number)).headers.authorization).toBe("Bearer spaced");
  });

  test("a key that no header can carry is reported without showing it", async () => {
    const error = await errorOf({ ports: { secret: () => `${KEY}\nx: y` } });
    expect(error.category).toBe("auth");
  });

  test("GATE-4 other secrets of the environment are out of reach", () => {
    const secret = secretsOf({ AUTH_SECRET: "a", DB: {}, OPENAI_API_KEY: "b", HF_TOKEN: "c", EMPTY_KEY: "" });
    expect(
      ["AUTH_SECRET", "DB", "OPENAI_API_KEY", "HF_TOKEN", "EMPTY_KEY", "constructor", "__proto___KEY"].map(
        secret,
      ),
    ).toEqual([undefined, undefined, "b", "c", undefined, undefined, undefined]);
  });
});

describe("workers-ai", () => {
  const bytes = (text: string) => new Blob([text]).stream();
  const run = (answer: AiBinding["run"], signal?: AbortSignal) => ({
    profile: { provider: "workers-ai", modelId: "@cf/test" } as const,
    body: { messages: [], stream: true },
    ports: { ai: { run: answer } },
    ...(signal === undefined ? {} : { signal }),
  });

  test("runs the model with the request and reads its stream", async () => {
    const seen: unknown[] = [];
    const deltas = await deltasOf(
      run(async (model, input) => {
        seen.push(model, input);
        return bytes('data: {"response":"Hi"}\n\ndata: {"response":" there"}\n\ndata: [DONE]\n\n');
      }),
    );
    expect(seen).toEqual(["@cf/test", { messages: [], stream: true }]);
    expect(textOf(deltas)).toBe("Hi there");
    expect(deltas.at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test.each([
    [{ response: "Hi", usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }],
    [{ choices: [{ message: { content: "Hi" } }] }],
  ])("a plain object is a whole reply: %j", async (answer) => {
    expect(await collectReply("workers-ai", stream(run(async () => answer)))).toMatchObject({
      ok: true,
      reply: { text: "Hi", finishReason: "stop" },
    });
  });

  test("a stream that ends early, and an answer that is none", async () => {
    expect(await errorOf(run(async () => bytes('data: {"response":"Hi"}\n\n')))).toMatchObject({
      category: "transient",
    });
    for (const answer of [undefined, null, "text", {}]) {
      expect(await errorOf(run(async () => answer))).toMatchObject({ category: "transient" });
    }
  });

  test.each([
    ["5007: No such model @cf/test or task", "not_found"],
    ["3036: You have used up your daily free allocation", "quota"],
    ["3040: Capacity temporarily exceeded, please try again.", "rate_limit"],
    ["AiError: 5006: required properties are missing", "validation"],
    ["error code: 1031", "transient"],
  ])("a failure %s", async (message, category) => {
    const fails = async () => {
      throw new Error(message);
    };
    const error = await errorOf(run(fails));
    expect(error).toMatchObject({ category, provider: "workers-ai" });
    expect(error.message).toContain(message);
  });

  test("without the binding it says what to add", async () => {
    const error = await errorOf({ profile: { provider: "workers-ai", modelId: "@cf/test" } });
    expect(error.category).toBe("validation");
    expect(error.message).toContain('"ai"');
  });

  test("a run that hangs is canceled, and its late stream is given back", async () => {
    const controller = new AbortController();
    const late = newGate();
    const given = newGate();
    const answer = async () => {
      await late.wait;
      return new ReadableStream({ cancel: given.open });
    };
    const running = errorOf(run(answer, controller.signal));
    controller.abort();
    expect(await running).toMatchObject({ category: "canceled" });
    late.open();
    await given.wait;
  });

  test("a stream that hangs is canceled", async () => {
    const controller = new AbortController();
    const given = newGate();
    const hangs = new ReadableStream({ cancel: given.open });
    const running = errorOf(run(async () => hangs, controller.signal));
    setImmediate(() => controller.abort());
    expect(await running).toMatchObject({ category: "canceled" });
    await given.wait;
  });
});

describe("offline", () => {
  const offline = (text: string): Call => {
    const profile = { provider: "offline", modelId: "offline-1" } as const;
    const context = {
      systemInstructions: [],
      messages: [{ role: "user", content: text } as const],
      tools: [],
      toolChoice: "auto",
    } as const;
    return { profile, body: adapterFor("offline").buildRequest(profile, context) };
  };

  test("answers without any network", async () => {
    const refuse = async () => {
      throw new Error("no network");
    };
    const deltas = await deltasOf({ ...offline("!say hello there"), ports: { fetch: refuse } });
    expect(textOf(deltas)).toBe("hello there");
    expect(deltas.at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test("paces a slow answer by the clock, and can be canceled in a pause", async () => {
    const slept: number[] = [];
    const counting: Clock = { now: clock.now, sleep: async (ms) => void slept.push(ms) };
    await deltasOf({ ...offline("!slow 5 200"), ports: { clock: counting } });
    expect(slept).toEqual([200, 200, 200, 200, 200]);

    const controller = new AbortController();
    const stuck: Clock = {
      now: clock.now,
      sleep: (_ms, signal) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason));
          queueMicrotask(() => controller.abort());
        }),
    };
    const error = await errorOf({
      ...offline("!slow 5"),
      ports: { clock: stuck },
      signal: controller.signal,
    });
    expect(error).toMatchObject({ category: "canceled", provider: "offline" });
  });
});
