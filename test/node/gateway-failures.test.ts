/** The gateway against a real server on loopback: every failure is one typed error, after one attempt. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ProviderId } from "../../src/model/profile.ts";
import * as calls from "../support/gateway-calls.ts";
import { type Call, clock, KEY, NOW, textOf } from "../support/gateway-calls.ts";
import { errorReply, type OpenAIServer, startOpenAIServer } from "../support/openai-server.ts";

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

const deltasOf = (given?: Call) => calls.deltasOf(call(given));
const errorOf = (given?: Call) => calls.errorOf(call(given));

describe("failures are one error delta", () => {
  test.each([
    [400, "validation", false],
    [401, "auth", false],
    [402, "quota", false],
    [403, "auth", false],
    [404, "not_found", false],
    [408, "timeout", true],
    [409, "transient", true],
    [418, "unknown", false],
    [422, "validation", false],
    [429, "rate_limit", true],
    [500, "transient", true],
    [503, "transient", true],
    [529, "transient", true],
  ])("MERR-1 status %i is %s, retriable %s, and is tried once", async (status, category, retriable) => {
    const calls = server.requests.length;
    server.reply(errorReply(status, { message: "As it is." }));
    const error = await errorOf();
    expect(error).toMatchObject({ category, retriable, status, provider: "openai" });
    const { origin } = new URL(server.baseUrl);
    expect(error.message).toContain(`The model server ${origin} answered ${status}: As it is.`);
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

  test("MERR-2 GATE-3 a message that quotes keys is redacted, and a long one is cut", async () => {
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

  test("REDACT-1 GATE-3 a server that says the key elsewhere, or in part, is not quoted either", async () => {
    const headers = { "x-request-id": `req ${KEY}`, "x-ratelimit-limit-requests": KEY };
    const message = `${"x".repeat(500 - KEY.length)}${KEY.slice(0, 4)}${KEY}`;
    server.reply(errorReply(429, { message }, headers));
    const deltas = await deltasOf({});
    expect(deltas).toMatchObject([
      { response: { requestId: "req [redacted]", rateLimit: { rawHeaders: {} } } },
      { error: { requestId: "req [redacted]", category: "rate_limit" } },
    ]);
    expect(JSON.stringify(deltas)).not.toContain(KEY.slice(0, 8));
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

  test("the server does not listen", async () => {
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
    expect(error.message).toContain("OPENAI_BASE_URL");
    expect(error).toMatchObject({
      category: "validation",
      retriable: false,
    });
  });

  test("GATE-1 a provider that is not built in", async () => {
    // SAFETY: stands for a profile that another release stored.
    const error = await errorOf({ profile: { provider: "nobody" as ProviderId } });
    expect(error).toMatchObject({ category: "validation", provider: "nobody" });
    expect(error.message).toContain("nobody");
  });

  test("GATE-1 a defect of the gateway's input is logged but not returned", async () => {
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
