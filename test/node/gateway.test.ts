/** The gateway against a real server on loopback: replies, and aborting them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { collectReply, type GatewayPorts, secretsOf } from "../../src/adapters/index.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import * as calls from "../support/gateway-calls.ts";
import { type Call, KEY, textOf } from "../support/gateway-calls.ts";
import {
  errorReply,
  jsonReply,
  newGate,
  type OpenAIServer,
  startOpenAIServer,
  textReply,
  toolReply,
} from "../support/openai-server.ts";

let server: OpenAIServer;

beforeAll(async () => {
  server = await startOpenAIServer();
});

afterAll(() => server.close());

/** A call of the server. */
const call = (given: Call = {}): Call => ({
  ...given,
  profile: { baseUrl: server.baseUrl, ...given.profile },
});

const stream = (given?: Call) => calls.stream(call(given));
const deltasOf = (given?: Call) => calls.deltasOf(call(given));
const errorOf = (given?: Call) => calls.errorOf(call(given));

describe("a reply of an OpenAI-compatible server", () => {
  test("the request is sent unchanged, with the key, and the reply streams back", async () => {
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

  test("the reply ends at [DONE] without waiting", async () => {
    const never = new Promise(() => {});
    const steps = [{ text: "a" }, { finish: "stop" }, { raw: "data: [DONE]\n\n" }, { gate: never }];
    const number = server.requests.length;
    server.reply({ kind: "stream", steps });
    expect((await deltasOf()).at(-1)?.type).toBe("finish");
    await (await server.request(number)).closed;
  });

  test("BYTES-1 a consumer that leaves closes the connection", async () => {
    const number = server.requests.length;
    server.reply({ kind: "stream", steps: [{ text: "a" }, { gate: new Promise(() => {}) }] });
    for await (const delta of stream()) if (delta.type === "text") break;
    await (await server.request(number)).closed;
  });
});

describe("aborting", () => {
  const hanging = [
    ["a server that never answers", { kind: "hang" }],
    ["a stream that stops", { kind: "stream", steps: [{ text: "a" }, { gate: new Promise(() => {}) }] }],
  ] as const;

  test.each(hanging)("BYTES-2 %s is canceled", async (_name, reply) => {
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
    const fetch: GatewayPorts["fetch"] = (_url, { signal }) =>
      new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    const signal = AbortSignal.timeout(20);
    expect(await errorOf({ signal, ports: { fetch } })).toMatchObject({ category: "timeout" });
  });

  test("DEADLINE-1 a transport that ignores its signal does not outlive the limit, and its late response is closed", async () => {
    const gate = newGate();
    const closed = Promise.withResolvers<unknown>();
    const body = new ReadableStream({ cancel: closed.resolve });
    const deaf: GatewayPorts["fetch"] = async () => {
      await gate.wait;
      return new Response(body);
    };
    const executionConfig = { firstByteTimeoutMs: 20 };
    expect(await errorOf({ profile: { executionConfig }, ports: { fetch: deaf } })).toMatchObject({
      category: "timeout",
      message: `The model did not begin to answer within 20 ms. Its server is ${new URL(server.baseUrl).origin}.`,
    });
    gate.open();
    await closed.promise;
  });

  test("an aborted signal sends no request", async () => {
    const calls = server.requests.length;
    expect(await errorOf({ signal: AbortSignal.abort() })).toMatchObject({ category: "canceled" });
    expect(server.requests.length).toBe(calls);
  });
});

describe("keys", () => {
  test("without a key, OpenAI itself is not called", async () => {
    const fetched: string[] = [];
    const error = await calls.errorOf({
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

  test("a custom server needs no key", async () => {
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
