/** Calls of each provider over HTTP, their errors, and the hosts that receive keys. */
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AttemptDeadlines } from "../../src/adapters/gateway/deadlines.ts";
import { httpTransport } from "../../src/adapters/gateway/http.ts";
import { createModelGateway, mayReceiveKey, secretsOf, trustedHosts } from "../../src/adapters/index.ts";
import type { ModelProfile, ProviderId } from "../../src/model/profile.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { allOf, clock, errorOf, KEY, NOW, stream } from "../support/gateway-calls.ts";
import {
  jsonReply,
  newGate,
  type OpenAIServer,
  startOpenAIServer,
  textReply,
} from "../support/openai-server.ts";

let server: OpenAIServer;

beforeAll(async () => {
  server = await startOpenAIServer();
});

afterAll(() => server.close());

const KEYS = secretsOf({ OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY, GEMINI_API_KEY: KEY });
const CONTEXT = { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "u" };

/** Every payload of one request, from the transport. */
async function arrivalsOf(given: Partial<ModelProfile>, body: JsonObject): Promise<unknown[]> {
  const profile: ModelProfile = { provider: "openai", modelId: "m", baseUrl: server.baseUrl, ...given };
  const attempt = new AttemptDeadlines(clock, undefined, new AbortController().signal);
  const ports = { secret: KEYS, fetch, clock, trustedHosts: trustedHosts({ profiles: [profile] }) };
  try {
    const arrivals: unknown[] = [];
    for await (const arrival of httpTransport({ profile, body, context: CONTEXT }, ports, attempt)) {
      if ("response" in arrival) arrivals.push(arrival);
      else for await (const batch of arrival.payloads) arrivals.push(...[batch].flat());
    }
    return arrivals;
  } finally {
    attempt.stop();
  }
}

describe("one transport for every provider", () => {
  const authorization = `Bearer ${KEY}`;

  test.each<[ProviderId, string, string, Record<string, string>]>([
    ["openai", "gpt-x", "/v1/chat/completions", { authorization }],
    ["openai-responses", "gpt-x", "/v1/responses", { authorization }],
    ["anthropic", "claude-x", "/v1/messages", { "x-api-key": KEY, "anthropic-version": "2023-06-01" }],
    ["gemini", "gemini-x", "/v1/models/gemini-x:streamGenerateContent?alt=sse", { "x-goog-api-key": KEY }],
    ["gemini", "tunedModels/mine", "/v1/tunedModels/mine:streamGenerateContent?alt=sse", {}],
  ])("%s %s is posted to %s with its headers", async (provider, modelId, path, headers) => {
    const number = server.requests.length;
    const body = 'event: a\ndata: {"n":1}\n\n: a comment\n\nevent: b\ndata: {"n":2}\n\n';
    const type = { "content-type": "text/event-stream", "request-id": "req-1" };
    server.reply({ kind: "body", status: 200, headers: type, body });
    expect(await arrivalsOf({ provider, modelId }, { hello: ["Grüße"] })).toEqual([
      { response: { status: 200, requestId: "req-1" } },
      '{"n":1}',
      '{"n":2}',
    ]);
    const sent = await server.request(number);
    expect(sent.path).toBe(path);
    expect(sent.body).toEqual({ hello: ["Grüße"] });
    expect(sent.headers).toMatchObject(headers);
  });

  test("Anthropic's base URL may lack the version, and its betas are a header", async () => {
    const number = server.requests.length;
    const profile: Partial<ModelProfile> = {
      provider: "anthropic",
      baseUrl: new URL(server.baseUrl).origin,
      parameters: { betas: ["one-2026-01-01", "two"] },
    };
    server.reply(jsonReply({}), jsonReply({}));
    await arrivalsOf(profile, { messages: [] });
    await arrivalsOf({ ...profile, parameters: {} }, { messages: [], betas: ["three"] });
    const first = await server.request(number);
    expect(first.path).toBe("/v1/messages");
    expect(first.headers["anthropic-beta"]).toBe("one-2026-01-01,two");
    const second = await server.request(number + 1);
    expect(second.headers["anthropic-beta"]).toBe("three");
    expect(second.body).toEqual({ messages: [] });
  });

  test.each([
    ["gemini", { modelId: "../../secrets" }],
    ["gemini", { modelId: "x:generate?key=1" }],
    ["gemini", { modelId: "models/" }],
    ["anthropic", { parameters: { betas: ["a\nb: c"] } }],
    ["anthropic", { parameters: { betas: [1] } }],
  ] as const)("%s %j is refused before anything is sent", async (provider, profile) => {
    const number = server.requests.length;
    const given: Partial<ModelProfile> = { provider, baseUrl: server.baseUrl };
    if ("modelId" in profile) given.modelId = profile.modelId;
    else given.parameters = { betas: [...profile.parameters.betas] };
    expect(await errorOf({ profile: given, ports: { secret: KEYS } })).toMatchObject({
      category: "validation",
    });
    expect(server.requests.length).toBe(number);
  });

  test.each<[ProviderId, string]>([
    ["openai-responses", "OPENAI_API_KEY"],
    ["anthropic", "ANTHROPIC_API_KEY"],
    ["gemini", "GEMINI_API_KEY"],
  ])("without a key %s names %s", async (provider, name) => {
    const error = await errorOf({ profile: { provider }, ports: { secret: () => undefined } });
    expect(error).toMatchObject({ category: "auth", provider });
    expect(error.message).toContain(name);
  });
});

describe("errors in each provider's own words", () => {
  const anthropic = (type: string, message: string) => ({ type: "error", error: { type, message } });
  const google = (code: number, status: string, message: string, details: JsonObject[] = []) => ({
    error: { code, message, status, details },
  });
  const quota = (quotaId: string) => ({
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    violations: [{ quotaId }],
  });
  const retryInfo = (retryDelay: string) => ({
    "@type": "type.googleapis.com/google.rpc.RetryInfo",
    retryDelay,
  });
  const spent = "You exceeded your current quota, please check your plan.";

  test.each<[ProviderId, number, unknown, Record<string, string>, JsonObject]>([
    [
      "openai",
      400,
      { error: { message: "No.", code: "context_length_exceeded" } },
      {},
      { category: "validation" },
    ],
    [
      "openai",
      400,
      { error: { message: "No.", code: "content_policy_violation" } },
      {},
      { category: "safety" },
    ],
    ["openai", 401, { error: { message: "Bad.", code: "invalid_api_key" } }, {}, { category: "auth" }],
    ["openai", 402, { error: { message: "Pay." } }, {}, { category: "quota" }],
    ["openai", 429, { error: { message: spent, code: "insufficient_quota" } }, {}, { category: "quota" }],
    [
      "openai",
      429,
      { error: { message: "Slow.", type: "tokens", code: "rate_limit_exceeded" } },
      { "retry-after-ms": "20", "retry-after": "1", "x-request-id": "req_o" },
      { category: "rate_limit", retryAfterMs: 20, requestId: "req_o" },
    ],
    ["openai", 503, { error: { message: "Full.", type: "server_error" } }, {}, { category: "transient" }],
    [
      "openai-responses",
      500,
      { error: { message: "Oops.", type: "server_error" } },
      {},
      { category: "transient" },
    ],
    ["anthropic", 400, anthropic("invalid_request_error", "Odd."), {}, { category: "validation" }],
    [
      "anthropic",
      400,
      anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
      {},
      { category: "quota" },
    ],
    ["anthropic", 401, anthropic("authentication_error", "Who?"), {}, { category: "auth" }],
    ["anthropic", 402, anthropic("billing_error", "Pay."), {}, { category: "quota" }],
    ["anthropic", 403, anthropic("permission_error", "No."), {}, { category: "auth" }],
    ["anthropic", 404, anthropic("not_found_error", "model: x"), {}, { category: "not_found" }],
    ["anthropic", 413, anthropic("request_too_large", "Big."), {}, { category: "validation" }],
    [
      "anthropic",
      429,
      anthropic("rate_limit_error", "Slow."),
      { "retry-after": "9", "request-id": "req_a" },
      { category: "rate_limit", retryAfterMs: 9_000, requestId: "req_a" },
    ],
    ["anthropic", 500, anthropic("api_error", "Oops."), {}, { category: "transient" }],
    ["anthropic", 529, anthropic("overloaded_error", "Overloaded"), {}, { category: "transient" }],
    [
      "gemini",
      400,
      google(400, "INVALID_ARGUMENT", "API key not valid.", [{ reason: "API_KEY_INVALID" }]),
      {},
      { category: "auth" },
    ],
    ["gemini", 400, google(400, "FAILED_PRECONDITION", "Not here."), {}, { category: "validation" }],
    ["gemini", 403, google(403, "PERMISSION_DENIED", "No."), {}, { category: "auth" }],
    ["gemini", 404, google(404, "NOT_FOUND", "models/x"), {}, { category: "not_found" }],
    [
      "gemini",
      429,
      google(429, "RESOURCE_EXHAUSTED", spent, [
        quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
        retryInfo("34.4s"),
      ]),
      {},
      { category: "rate_limit", retryAfterMs: 34_400 },
    ],
    [
      "gemini",
      429,
      google(429, "RESOURCE_EXHAUSTED", spent, [
        quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
        retryInfo("12s"),
      ]),
      {},
      { category: "quota" },
    ],
    ["gemini", 500, [google(500, "INTERNAL", "Oops.")], {}, { category: "transient" }],
    ["gemini", 503, google(503, "UNAVAILABLE", "The model is overloaded."), {}, { category: "transient" }],
  ])("%s %i %j", async (provider, status, body, headers, expected) => {
    server.reply(jsonReply(body, status, headers));
    const error = await errorOf({ profile: { provider, baseUrl: server.baseUrl }, ports: { secret: KEYS } });
    const retriable = ["rate_limit", "transient"].includes(String(expected.category));
    expect(error).toMatchObject({ ...expected, status, provider, retriable });
    expect(error.message).toMatch(new RegExp(`answered ${status}: `));
  });

  test.each<ProviderId>(["openai-responses", "anthropic", "gemini"])(
    "%s: a web page, a redirect, and no server",
    async (provider) => {
      const call = { profile: { provider, baseUrl: server.baseUrl }, ports: { secret: KEYS } };
      server.reply({ kind: "body", status: 200, headers: { "content-type": "text/html" }, body: "<html>" });
      expect(await errorOf(call)).toMatchObject({ category: "validation", retriable: false });
      server.reply({ kind: "body", status: 302, headers: { location: "http://127.0.0.1:1/" }, body: "" });
      expect(await errorOf(call)).toMatchObject({ category: "validation", status: 302 });
      const gone = { ...call, profile: { provider, baseUrl: "http://127.0.0.1:1" } };
      expect(await errorOf(gone)).toMatchObject({ category: "network", retriable: true });
    },
  );
});

describe("the headers of a reply", () => {
  const responseOf = async (status: number, headers: Record<string, string>) => {
    server.reply(
      jsonReply({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] }, status, headers),
    );
    const deltas = await allOf(stream({ profile: { baseUrl: server.baseUrl } }));
    const [first] = deltas;
    return first?.type === "response" ? first.response : undefined;
  };

  test("C20 OpenAI's limits, as spans", async () => {
    expect(
      await responseOf(200, {
        "x-request-id": "req_1",
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "29970",
        "x-ratelimit-reset-tokens": "6m0s",
      }),
    ).toMatchObject({
      status: 200,
      requestId: "req_1",
      rateLimit: {
        limitRequests: 500,
        remainingRequests: 499,
        resetRequestsAt: NOW + 120,
        limitTokens: 30_000,
        remainingTokens: 29_970,
        resetTokensAt: NOW + 360_000,
        isRateLimited: false,
        rawHeaders: { "x-ratelimit-reset-tokens": "6m0s" },
      },
    });
  });

  test("C20 Anthropic's limits, as dates, also with a refusal", async () => {
    expect(
      await responseOf(429, {
        "retry-after": "7",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": new Date(NOW + 7_000).toISOString(),
        "anthropic-ratelimit-tokens-remaining": "many",
      }),
    ).toEqual({
      status: 429,
      rateLimit: {
        limitRequests: 50,
        remainingRequests: 0,
        resetRequestsAt: NOW + 7_000,
        isRateLimited: true,
        rawHeaders: {
          "retry-after": "7",
          "anthropic-ratelimit-requests-limit": "50",
          "anthropic-ratelimit-requests-remaining": "0",
          "anthropic-ratelimit-requests-reset": new Date(NOW + 7_000).toISOString(),
          "anthropic-ratelimit-tokens-remaining": "many",
        },
      },
    });
  });

  test.each([
    ["12", NOW + 12_000],
    ["1h2m3.5s", NOW + 3_723_500],
    [String(NOW / 1000 + 60), NOW + 60_000],
    ["tomorrow", undefined],
  ])("a reset of %s", async (reset, expected) => {
    const response = await responseOf(200, { "x-ratelimit-reset-requests": reset });
    expect(response?.rateLimit?.resetRequestsAt).toBe(expected);
  });

  test("without limits", async () => {
    expect(await responseOf(200, {})).toEqual({ status: 200 });
  });
});

describe("silence", () => {
  /** A call on a virtual clock, read by hand. */
  function call(executionConfig: ModelProfile["executionConfig"] = {}) {
    const time = new VirtualClock(NOW);
    const number = server.requests.length;
    let pieces = 0;
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        pieces += 1;
        controller.enqueue(piece);
      },
    });
    const counting = async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      return new Response(response.body?.pipeThrough(counted) ?? null, response);
    };
    const profile = { baseUrl: server.baseUrl, executionConfig };
    const deltas = stream({ profile, ports: { clock: time, fetch: counting } });
    const reading = deltas[Symbol.asyncIterator]();
    const until = async (type: ModelDelta["type"]) => {
      for (let next = await reading.next(); !next.done; next = await reading.next()) {
        if (next.value.type === type) return next.value;
      }
      throw new Error(`no ${type}`);
    };
    return { time, until, arrived: () => server.request(number), pieces: () => pieces };
  }
  const never = new Promise(() => {});
  const timeout = { type: "error", error: { category: "timeout", retriable: true } };

  test("DEADLINE-1 a server that never answers", async () => {
    server.reply({ kind: "hang" });
    const { time, until, arrived } = call();
    const error = until("error");
    const { closed } = await arrived();
    await time.advance(60_000);
    expect(await error).toMatchObject(timeout);
    await closed;
    expect(time.pending).toBe(0);
  });

  test("DEADLINE-1 a server that sends only headers", async () => {
    server.reply({ kind: "stream", steps: [{ gate: never }] });
    const { time, until } = call({ firstByteTimeoutMs: 5_000 });
    await until("response");
    const error = until("error");
    await time.advance(5_000);
    expect(await error).toMatchObject({ error: { message: expect.stringContaining("begin to answer") } });
  });

  test("DEADLINE-1 DEADLINE-3 a reply that stops in the middle", async () => {
    const number = server.requests.length;
    server.reply({ kind: "stream", steps: [{ text: "a" }, { gate: never }] });
    const { time, until } = call();
    await until("text");
    const error = until("error");
    await time.advance(60_000);
    expect(await error).toMatchObject({
      error: { message: expect.stringContaining("sent no data for 60000 ms") },
    });
    await (await server.request(number)).closed;
    expect(time.pending).toBe(0);
  });

  test("DEADLINE-1 a heartbeat is no silence", async () => {
    const beat = newGate();
    const end = newGate();
    const steps = [
      { text: "a" },
      { gate: beat.wait },
      { raw: ": still here\n\n" },
      { gate: end.wait },
      { finish: "stop" },
    ];
    server.reply({ kind: "stream", steps });
    const { time, until, pieces } = call();
    await until("text");
    const finish = until("finish");
    await time.advance(50_000);
    const before = pieces();
    beat.open();
    while (pieces() === before) await setImmediate();
    await time.advance(50_000);
    end.open();
    expect(await finish).toMatchObject({ reason: "stop" });
  });

  test("DEADLINE-2 a reader may pause", async () => {
    const end = newGate();
    server.reply({ kind: "stream", steps: [{ text: "a" }, { gate: end.wait }, { finish: "stop" }] });
    const { time, until } = call({ timeoutMs: 900_000 });
    await until("text");
    await time.advance(600_000);
    end.open();
    expect(await until("finish")).toMatchObject({ reason: "stop" });
  });

  test("DEADLINE-1 a reply without end is cut off in all", async () => {
    server.reply({ kind: "stream", steps: [{ text: "a" }, { gate: never }] });
    const { time, until } = call({ timeoutMs: 30_000 });
    await until("text");
    const error = until("error");
    await time.advance(30_000);
    expect(await error).toMatchObject({
      error: { message: expect.stringContaining("longer than 30000 ms") },
    });
  });
});

describe("the hosts that keys are sent to", () => {
  const profile = (given: Partial<ModelProfile>): ModelProfile => ({
    provider: "openai",
    modelId: "m",
    ...given,
  });

  test("TRUST-1 to the provider's own host, and to hosts that the deployer named", () => {
    const groq = profile({ baseUrl: "https://api.groq.com/openai/v1", apiKeySecret: "GROQ_API_KEY" });
    const trusted = trustedHosts({
      env: {
        ANTHROPIC_BASE_URL: "http://127.0.0.1:9000",
        DRAMATIS_MODEL_HOSTS: "one.example, two.example:8443",
      },
      profiles: [groq],
      allowedHosts: ["http://10.0.0.1:11434"],
    });
    const may = (given: Partial<ModelProfile>) => mayReceiveKey(profile(given), trusted);
    expect(may({})).toBe(true);
    expect(may({ provider: "gemini" })).toBe(true);
    expect(may({ provider: "workers-ai" })).toBe(true);
    expect(may({ baseUrl: "https://api.openai.com/v1" })).toBe(true);
    expect(may({ provider: "openai-responses", baseUrl: "https://api.openai.com/v1" })).toBe(true);
    expect(may({ baseUrl: "https://api.anthropic.com" })).toBe(false);
    expect(may({ provider: "anthropic", baseUrl: "http://127.0.0.1:9000/v1" })).toBe(true);
    expect(may({ baseUrl: "http://127.0.0.1:9000/v1" })).toBe(false);
    expect(mayReceiveKey(groq, trusted)).toBe(true);
    expect(may({ baseUrl: "https://api.groq.com/openai/v1" })).toBe(false);
    expect(may({ baseUrl: "https://one.example/v1" })).toBe(true);
    expect(may({ baseUrl: "https://two.example:8443/v1" })).toBe(true);
    expect(may({ baseUrl: "http://10.0.0.1:11434/v1" })).toBe(true);
  });

  test.each([
    "http://api.openai.com/v1",
    "https://api.openai.com:8443/v1",
    "https://api.openai.com.evil.example/v1",
    "https://evil.example/api.openai.com",
    "https://api.openai.com@evil.example/v1",
    "http://one.example/v1",
    "not an address",
  ])("TRUST-2 never to %s", (baseUrl) => {
    const trusted = trustedHosts({ allowedHosts: ["one.example"] });
    expect(mayReceiveKey(profile({ baseUrl }), trusted)).toBe(false);
    expect(mayReceiveKey(profile({ baseUrl }))).toBe(false);
  });

  test("TRUST-3 only the provider's own key, keys of the deployed code, and keys that the deployer named", () => {
    const groq = profile({ baseUrl: "https://api.groq.com/openai/v1", apiKeySecret: "GROQ_API_KEY" });
    const trusted = trustedHosts({
      env: { OPENAI_BASE_URL: "http://127.0.0.1:9000", DRAMATIS_MODEL_SECRETS: "TEAM_KEY, SPARE_TOKEN" },
      profiles: [groq],
      allowedHosts: ["one.example"],
      allowedSecrets: ["LAB_KEY"],
    });
    const may = (apiKeySecret: string, baseUrl?: string, provider: ProviderId = "openai") =>
      mayReceiveKey({ provider, apiKeySecret, ...(baseUrl === undefined ? {} : { baseUrl }) }, trusted);
    const places = [undefined, "http://127.0.0.1:9000/v1", "https://one.example/v1"];
    for (const place of places) {
      for (const name of ["OPENAI_API_KEY", "TEAM_KEY", "SPARE_TOKEN", "LAB_KEY"]) {
        expect(may(name, place), `${name} at ${place}`).toBe(true);
      }
      for (const name of ["STRIPE_API_KEY", "ANTHROPIC_API_KEY", "team_key"]) {
        expect(may(name, place), `${name} at ${place}`).toBe(false);
      }
    }
    expect(may("GROQ_API_KEY", groq.baseUrl)).toBe(true);
    expect(may("GROQ_API_KEY", "https://one.example/v1")).toBe(true);
    expect(may("GROQ_API_KEY")).toBe(false);
    expect(may("STRIPE_API_KEY", groq.baseUrl)).toBe(false);
    expect(may("ANTHROPIC_API_KEY", undefined, "anthropic")).toBe(true);
    expect(may("OPENAI_API_KEY", undefined, "anthropic")).toBe(false);
  });

  test.each(["STRIPE", "sk-12345", "_KEY", "A KEY", "A_KEYS"])("%s is no name of a key", (name) => {
    expect(() => trustedHosts({ allowedSecrets: [name] })).toThrowError(
      expect.objectContaining({ code: "INVALID_INPUT" }),
    );
  });

  test("GATE-5 TRUST-3 a profile that was pinned before is sent no key that is not named any more", async () => {
    const number = server.requests.length;
    const host = new URL(server.baseUrl).origin;
    const secret = secretsOf({ OPENAI_API_KEY: KEY, STRIPE_API_KEY: KEY });
    const trusted = trustedHosts({ allowedHosts: [host] });
    const gateway = createModelGateway({ secret, fetch, clock, trustedHosts: trusted });
    const pinned = profile({ baseUrl: server.baseUrl, apiKeySecret: "STRIPE_API_KEY" });
    const request = { profile: pinned, body: {}, context: CONTEXT };
    const deltas = await allOf(gateway.stream(request, new AbortController().signal));
    expect(deltas).toMatchObject([{ type: "error", error: { category: "auth", retriable: false } }]);
    expect(JSON.stringify(deltas)).toContain("DRAMATIS_MODEL_SECRETS");
    expect(server.requests.length).toBe(number);
  });

  test.each(["ftp://a", "one.example/path", "https://u:p@one.example", "a b", "https://one.example?x"])(
    "%s is no host",
    (host) => {
      expect(() => trustedHosts({ allowedHosts: [host] })).toThrowError(
        expect.objectContaining({ code: "INVALID_INPUT" }),
      );
    },
  );

  test.each<ProviderId>(["openai", "openai-responses", "anthropic", "gemini"])(
    "GATE-5 %s: a profile that somebody else wrote gets no key out of the deployment",
    async (provider) => {
      const number = server.requests.length;
      const gateway = createModelGateway({ secret: KEYS, fetch, clock });
      const foreign = { provider, modelId: "m", baseUrl: server.baseUrl };
      const request = { profile: foreign, body: {}, context: CONTEXT };
      const deltas = await allOf(gateway.stream(request, new AbortController().signal));
      expect(deltas).toMatchObject([{ type: "error", error: { category: "auth", retriable: false } }]);
      expect(JSON.stringify(deltas)).toContain("DRAMATIS_MODEL_HOSTS");
      expect(JSON.stringify(deltas)).not.toContain(KEY);
      expect(server.requests.length).toBe(number);
    },
  );

  test("GATE-5 a server that gets no key needs no trust", async () => {
    const number = server.requests.length;
    server.reply(textReply("ok"));
    const ports = { secret: () => undefined, trustedHosts: [] };
    await allOf(stream({ profile: { baseUrl: server.baseUrl }, ports }));
    expect((await server.request(number)).headers.authorization).toBeUndefined();
  });
});
