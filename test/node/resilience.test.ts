/** Requests that outlive their attempts, against a real server on loopback. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import {
  createModelGateway,
  createResilientGateway,
  guardGateway,
  HostGuards,
  type Interceptor,
  type ModelDelta,
  type ModelProfile,
  type RequestMetrics,
  type ResilientDelta,
  type ResilientGatewayOptions,
  type ResilientRequest,
  secretsOf,
  trustedHosts,
} from "../../src/adapters/index.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { allOf, KEY, NOW, textOf } from "../support/gateway-calls.ts";
import {
  errorReply,
  newGate,
  type OpenAIServer,
  type Reply,
  startOpenAIServer,
  textReply,
} from "../support/openai-server.ts";
import { SteeredClock } from "../support/steered-clock.ts";

let server: OpenAIServer;
let other: OpenAIServer;
let clock: SteeredClock;
/** Requests that `server` had got before the test. */
let before: number;

beforeAll(async () => {
  server = await startOpenAIServer();
  other = await startOpenAIServer();
});

afterAll(async () => {
  await server.close();
  await other.close();
});

beforeEach(() => {
  clock = new SteeredClock();
  before = server.requests.length;
});

const context = { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "u" };
const never = new Promise(() => {});
const failing = (status: number, headers: Record<string, string> = {}) =>
  errorReply(status, { message: "No." }, headers);
const many = (count: number, reply: Reply): Reply[] => Array.from({ length: count }, () => reply);
const sent = () => server.requests.length - before;

function profileOf({ baseUrl }: OpenAIServer, more: Partial<ModelProfile> = {}): ModelProfile {
  return { provider: "openai", modelId: "m", baseUrl, ...more };
}

function rawGateway() {
  const profiles = [profileOf(server), profileOf(other)];
  const secret = secretsOf({ OPENAI_API_KEY: KEY });
  return createModelGateway({ secret, fetch, clock, trustedHosts: trustedHosts({ profiles }) });
}

interface Asked {
  options?: Partial<ResilientGatewayOptions>;
  request?: Partial<ResilientRequest>;
  signal?: AbortSignal;
}

/** A request of `server`, by default without jitter. */
function stream({ options, request, signal = new AbortController().signal }: Asked = {}) {
  const gateway = createResilientGateway(rawGateway(), {
    clock,
    ids: seededIds(1, clock),
    random: () => 0.5,
    ...options,
  });
  const asked: ResilientRequest = {
    profiles: [profileOf(server)],
    body: ({ modelId }) => ({ model: modelId, messages: [], stream: true }),
    context,
    ...request,
  };
  return gateway.stream(asked, signal);
}

const ask = (asked?: Asked) => allOf(stream(asked));

/** The only outcome of a request. It is the last delta. */
function outcomeOf(deltas: readonly ResilientDelta[]) {
  const outcomes = deltas.filter((delta) => delta.type === "outcome");
  const last = deltas.at(-1);
  if (outcomes.length !== 1 || last?.type !== "outcome") throw new Error("not one outcome at the end");
  return last.outcome;
}

const isModelDelta = (delta: ResilientDelta): delta is ModelDelta =>
  delta.type !== "reset" && delta.type !== "outcome";

describe("one outcome per request", () => {
  test("C20 RESIL-6 RESIL-7 a reply: attempts, times and limits are reported once", async () => {
    const metrics: RequestMetrics[] = [];
    const usage = { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 };
    server.reply(failing(500), { kind: "stream", steps: [{ text: "Hi" }, { usage }, { finish: "stop" }] });
    const profiles = [profileOf(server, { costPer1kInput: 1, costPer1kOutput: 2 })] as const;
    const deltas = await ask({
      request: { profiles },
      options: { metrics: (one) => void metrics.push(one) },
    });
    const outcome = outcomeOf(deltas);
    expect(outcome).toEqual({
      ok: true,
      status: 200,
      errorCategory: "none",
      attempts: 2,
      startedAt: NOW,
      finishedAt: NOW + 250,
    });
    expect(metrics).toMatchObject([
      { span: "dramatis.chat", outcome, usage: { inputTokens: 1_000, outputTokens: 500 }, cost: 2 },
    ]);
    expect(textOf(deltas.filter(isModelDelta))).toBe("Hi");
    expect(deltas.some(({ type }) => type === "reset")).toBe(false);
    expect(clock.pending).toBe(0);
  });

  test("C20 a failure: category, status, attempts and rate limits", async () => {
    const limits = { "x-ratelimit-remaining-requests": "0", "retry-after": "1" };
    server.reply(...many(3, failing(429, limits)));
    const deltas = await ask();
    expect(outcomeOf(deltas)).toMatchObject({
      ok: false,
      status: 429,
      errorCategory: "rate_limit",
      attempts: 3,
      rateLimitFeedback: { isRateLimited: true, remainingRequests: 0 },
    });
    expect(deltas.filter(({ type }) => type === "error")).toHaveLength(1);
    expect(deltas.at(-2)).toMatchObject({ type: "error", error: { category: "rate_limit" } });
    expect(sent()).toBe(3);
  });

  test.each([
    [400, "validation"],
    [401, "auth"],
    [402, "quota"],
    [404, "not_found"],
  ])("C20 a refusal with status %i is requested once", async (status, errorCategory) => {
    server.reply(failing(status));
    expect(outcomeOf(await ask())).toMatchObject({ ok: false, status, errorCategory, attempts: 1 });
    expect(clock.slept).toEqual([]);
  });

  test("C20 RESIL-7 a caller who leaves in the middle is reported as canceled", async () => {
    const metrics: RequestMetrics[] = [];
    const ends: string[] = [];
    server.reply({ kind: "stream", steps: [{ text: "a" }, { gate: never }] });
    const interceptors = [{ onError: ({ category }) => void ends.push(category) }] satisfies Interceptor[];
    const options = { metrics: (one: RequestMetrics) => void metrics.push(one), interceptors };
    for await (const delta of stream({ options })) if (delta.type === "text") break;
    expect(metrics).toMatchObject([{ outcome: { ok: false, errorCategory: "canceled", attempts: 1 } }]);
    expect(ends).toEqual(["canceled"]);
    await (await server.request(before)).closed;
    expect(clock.pending).toBe(0);
  });

  test("RESIL-6 a failing sink has no effect", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    for (const metrics of [
      () => {
        throw new Error("sink");
      },
      () => Promise.reject(new Error("sink")),
    ]) {
      server.reply(textReply("ok"));
      expect(outcomeOf(await ask({ options: { metrics } }))).toMatchObject({ ok: true });
    }
    expect(log).toHaveBeenCalledTimes(2);
    log.mockRestore();
  });

  test("a model call without an opt-in to retries is made once", async () => {
    server.reply(failing(500));
    expect(outcomeOf(await ask({ options: { resilience: { maxAttempts: 1 } } }))).toMatchObject({
      attempts: 1,
    });
    server.reply(failing(500));
    const resilience = { retryEnabled: false };
    expect(outcomeOf(await ask({ request: { resilience } }))).toMatchObject({ attempts: 1 });
  });

  test("a configuration that makes no sense fails the request", async () => {
    const deltas = await ask({ request: { resilience: { jitterFactorRange: [2, 1] } } });
    expect(outcomeOf(deltas)).toMatchObject({ ok: false, errorCategory: "validation", attempts: 0 });
    expect(sent()).toBe(0);
  });
});

describe("pauses", () => {
  test("C21 RESIL-1 the delay equals Retry-After, in seconds and as a date, and is capped", async () => {
    const date = { "retry-after": new Date(NOW + 7_000 + 5_000).toUTCString() };
    server.reply(failing(429, { "retry-after": "7" }), failing(503, date), textReply("ok"));
    expect(outcomeOf(await ask())).toMatchObject({ ok: true, attempts: 3, finishedAt: NOW + 12_000 });
    expect(clock.slept).toEqual([7_000, 5_000]);
    server.reply(failing(429, { "retry-after": "600" }), textReply("ok"));
    await ask({ options: { resilience: { maxBackoffMs: 20_000 } } });
    expect(clock.slept.at(-1)).toBe(20_000);
  });

  test("C21 RESIL-2 a deadline prevents sleeping", async () => {
    server.reply(failing(429, { "retry-after": "90" }));
    const resilience = { maxBackoffMs: 600_000 };
    expect(outcomeOf(await ask({ options: { resilience } }))).toMatchObject({
      ok: false,
      errorCategory: "rate_limit",
      attempts: 1,
      finishedAt: NOW,
    });
    for (const request of [{ deadline: NOW + 100 }, { resilience: { maxEndToEndLatencyMs: 200 } }]) {
      server.reply(failing(500));
      expect(outcomeOf(await ask({ request }))).toMatchObject({ attempts: 1 });
    }
    expect(clock.slept).toEqual([]);
  });

  test("a passed deadline sends no request", async () => {
    const deltas = await ask({ request: { deadline: NOW } });
    expect(outcomeOf(deltas)).toMatchObject({ ok: false, errorCategory: "timeout", attempts: 0 });
    expect(sent()).toBe(0);
  });

  test("without the provider's advice they double, with jitter", async () => {
    server.reply(...many(4, failing(500)));
    await ask({ options: { resilience: { maxAttempts: 4 }, random: () => 0 } });
    expect(clock.slept).toEqual([200, 400, 800]);
  });

  test("a custom classifier wins", async () => {
    server.reply(failing(418, { "retry-after": "9" }), failing(500));
    const deltas = await ask({
      options: {
        classify: ({ status }) =>
          status === 418
            ? { category: "transient", suggestedBackoffMs: 42 }
            : { category: "quota", retryable: false },
      },
    });
    expect(clock.slept).toEqual([42]);
    expect(outcomeOf(deltas)).toMatchObject({ ok: false, errorCategory: "quota", status: 500, attempts: 2 });
    expect(deltas.at(-2)).toMatchObject({ error: { category: "quota", retriable: false } });
  });
});

describe("time and silence", () => {
  test("an attempt that takes too long is tried again", async () => {
    server.reply({ kind: "hang" }, textReply("ok"));
    const asking = ask({ options: { resilience: { perAttemptTimeoutMs: 1_234 } } });
    await server.request(before);
    clock.fire(1_234);
    expect(outcomeOf(await asking)).toMatchObject({ ok: true, attempts: 2 });
  });

  test("a model's own time replaces the attempt's", async () => {
    server.reply({ kind: "hang" });
    const profiles = [profileOf(server, { executionConfig: { timeoutMs: 80_000 } })] as const;
    const asking = ask({ request: { profiles, resilience: { maxAttempts: 1 } } });
    await server.request(before);
    expect(() => clock.fire(30_000)).toThrowError();
    clock.fire(80_000);
    expect(outcomeOf(await asking)).toMatchObject({ errorCategory: "timeout", attempts: 1 });
  });

  test("RESIL-8 a silent stream is withdrawn and retried", async () => {
    server.reply({ kind: "stream", steps: [{ text: "Half" }, { gate: never }] }, textReply("Whole"));
    const profiles = [profileOf(server, { executionConfig: { idleTimeoutMs: 777 } })] as const;
    const seen: ResilientDelta[] = [];
    for await (const delta of stream({ request: { profiles } })) {
      seen.push(delta);
      if (delta.type === "text" && delta.text === "Half") queueMicrotask(() => clock.fire(777));
    }
    expect(seen.flatMap((delta) => (delta.type === "text" ? [delta.text] : [delta.type]))).toEqual([
      "response",
      "message-id",
      "Half",
      "reset",
      "response",
      "message-id",
      "Whole",
      "finish",
      "outcome",
    ]);
  });

  test("RESIL-8 a connection that breaks in the middle", async () => {
    server.reply({ kind: "stream", steps: [{ text: "Half" }, { cut: true }] }, textReply("Whole"));
    const deltas = await ask();
    const reset = deltas.findIndex(({ type }) => type === "reset");
    expect(textOf(deltas.slice(reset).filter(isModelDelta))).toBe("Whole");
    expect(outcomeOf(deltas)).toMatchObject({ ok: true, attempts: 2 });
  });

  test("the text of the last attempt is left to the caller", async () => {
    server.reply({ kind: "stream", steps: [{ text: "Half" }, { cut: true }] });
    const deltas = await ask({ request: { resilience: { maxAttempts: 1 } } });
    expect(deltas.some(({ type }) => type === "reset")).toBe(false);
    expect(outcomeOf(deltas)).toMatchObject({ ok: false, errorCategory: "network" });
  });
});

describe("aborting", () => {
  test("C22 RESIL-9 an abort is canceled after a single attempt", async () => {
    const controller = new AbortController();
    server.reply({ kind: "hang" });
    const asking = ask({ signal: controller.signal });
    await server.request(before);
    controller.abort();
    const deltas = await asking;
    expect(deltas.at(-2)).toMatchObject({ type: "error", error: { category: "canceled", retriable: false } });
    expect(outcomeOf(deltas)).toMatchObject({ ok: false, errorCategory: "canceled", attempts: 1 });
    expect(sent()).toBe(1);
    expect(clock.slept).toEqual([]);
  });

  test("C22 RESIL-9 in a pause, and before anything was sent", async () => {
    const controller = new AbortController();
    clock.onSleep = () => controller.abort();
    server.reply(failing(500));
    expect(outcomeOf(await ask({ signal: controller.signal }))).toMatchObject({
      errorCategory: "canceled",
      attempts: 1,
    });
    expect(outcomeOf(await ask({ signal: controller.signal }))).toMatchObject({
      errorCategory: "canceled",
      attempts: 0,
    });
    expect(sent()).toBe(1);
  });

  test("RESIL-9 a caller's own timeout is not retried", async () => {
    const controller = new AbortController();
    server.reply({ kind: "hang" });
    const asking = ask({ signal: controller.signal });
    await server.request(before);
    controller.abort(new DOMException("Too long.", "TimeoutError"));
    expect(outcomeOf(await asking)).toMatchObject({ errorCategory: "timeout", attempts: 1 });
    expect(clock.slept).toEqual([]);
  });
});

describe("interceptors", () => {
  const tracing = (name: string, log: string[]): Interceptor => ({
    beforeSend: (_request, { attempt }) => void log.push(`${name} before ${attempt}`),
    afterResponse: ({ finishReason }) => void log.push(`${name} after ${finishReason}`),
    onError: ({ category }) => void log.push(`${name} error ${category}`),
  });

  test("C23 RESIL-4 RESIL-5 before in order, once per attempt; after and error reversed", async () => {
    const log: string[] = [];
    server.reply(failing(500), textReply("ok"));
    await ask({ options: { interceptors: [tracing("one", log), tracing("two", log)] } });
    expect(log).toEqual([
      "one before 1",
      "two before 1",
      "two error transient",
      "one error transient",
      "one before 2",
      "two before 2",
      "two after stop",
      "one after stop",
    ]);
  });

  test("C23 RESIL-4 a throw stops the request: it is neither sent nor retried", async () => {
    const log: string[] = [];
    const refusing: Interceptor = {
      beforeSend() {
        throw new DramatisError("FORBIDDEN", "Not on Sundays.");
      },
    };
    const interceptors = [tracing("one", log), refusing, tracing("three", log)];
    const profiles = [profileOf(server), profileOf(other)] as const;
    const classify = () => ({ category: "transient" }) as const;
    const deltas = await ask({ options: { interceptors, classify }, request: { profiles } });
    expect(outcomeOf(deltas)).toMatchObject({ ok: false, attempts: 0 });
    expect(deltas.at(-2)).toMatchObject({ error: { message: expect.stringContaining("Not on Sundays.") } });
    expect(log).toEqual(["one before 1", "three error validation", "one error validation"]);
    expect(sent()).toBe(0);
  });

  test("C23 RESIL-4 a hanging interceptor ends with the attempt's time, or with the caller", async () => {
    const log: string[] = [];
    let hangs = true;
    const asked = newGate();
    const hanging: Interceptor = {
      async beforeSend() {
        if (!hangs) return;
        asked.open();
        await never;
      },
    };
    const interceptors = [tracing("one", log), hanging];
    server.reply(textReply("ok"));
    const asking = ask({ options: { interceptors } });
    await asked.wait;
    hangs = false;
    clock.fire(30_000);
    expect(outcomeOf(await asking)).toMatchObject({ ok: true, attempts: 1 });
    expect(log).toEqual(["one before 1", "one error timeout", "one before 1", "one after stop"]);
    hangs = true;
    const controller = new AbortController();
    const left = ask({ options: { interceptors }, signal: controller.signal });
    controller.abort();
    expect(outcomeOf(await left)).toMatchObject({ errorCategory: "canceled", attempts: 0 });
    expect(sent()).toBe(1);
    expect(clock.pending).toBe(0);
  });

  test("C23 the request may be changed, also for a single attempt", async () => {
    const stamp: Interceptor = {
      beforeSend: async (request) => ({ ...request, body: { ...request.body, user: "stamped" } }),
    };
    const ids = seededIds(2, clock);
    const gateway = guardGateway(rawGateway(), { interceptors: [stamp], ids });
    server.reply(textReply("ok"));
    const request = { profile: profileOf(server), body: { stream: true }, context };
    await allOf(gateway.stream(request, new AbortController().signal));
    expect((await server.request(before)).body).toEqual({ stream: true, user: "stamped" });
  });

  test("RESIL-5 an observer's exception is logged and ignored", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const clumsy: Interceptor = {
      afterResponse() {
        throw new Error("observer");
      },
    };
    server.reply(textReply("ok"));
    expect(outcomeOf(await ask({ options: { interceptors: [clumsy] } }))).toMatchObject({ ok: true });
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });

  test("C15 C16 C17 they get the caller, the purpose and the settings of the request", async () => {
    const seen: unknown[] = [];
    const watching: Interceptor = { beforeSend: (_request, info) => void seen.push(info) };
    server.reply(textReply("ok"));
    await ask({
      options: { interceptors: [watching] },
      request: { trace: { requestId: "r", parentCorrelationId: "c:t", requestClass: "batch" } },
    });
    expect(seen).toEqual([
      {
        requestId: "r",
        correlationId: "c:u",
        parentCorrelationId: "c:t",
        attempt: 1,
        agentContext: {
          agent: "a",
          runId: "c:u",
          labels: { conversationId: "c", turnId: "u", provider: "openai", model: "m" },
        },
        extensions: {
          "ai.provider": "openai",
          "ai.model": "m",
          "ai.request_type": "chat",
          "ai.streaming": true,
          "request.class": "batch",
        },
      },
    ]);
  });
});

describe("a chain of models", () => {
  const chain = () =>
    [
      profileOf(server),
      profileOf(other, { modelId: "second" }),
    ] as const satisfies ResilientRequest["profiles"];

  test("the next model is called when a model has failed permanently, with its own body", async () => {
    const number = other.requests.length;
    server.reply(...many(3, { kind: "stream", steps: [{ text: "Half" }, { cut: true }] }));
    other.reply(textReply("Whole"));
    const deltas = await ask({ request: { profiles: chain() } });
    expect(deltas.filter(({ type }) => type === "reset")).toHaveLength(3);
    expect(outcomeOf(deltas)).toMatchObject({ ok: true, attempts: 4 });
    expect(deltas.at(-1)).toMatchObject({ profile: { modelId: "second" } });
    expect((await other.request(number)).body.model).toBe("second");
  });

  test("RESIL-3 a requested long wait is spent with the next model", async () => {
    server.reply(failing(429, { "retry-after": "30" }));
    other.reply(textReply("ok"));
    expect(outcomeOf(await ask({ request: { profiles: chain() } }))).toMatchObject({ ok: true, attempts: 2 });
    expect(clock.slept).toEqual([]);
  });

  test("RESIL-3 if the next model fails too, the first model is called again after the wait", async () => {
    server.reply(failing(429, { "retry-after": "30" }), textReply("ok"));
    other.reply(failing(401));
    const deltas = await ask({ request: { profiles: chain() } });
    expect(outcomeOf(deltas)).toMatchObject({ ok: true, attempts: 3 });
    expect(textOf(deltas.filter(isModelDelta))).toBe("ok");
    expect(clock.slept).toEqual([30_000]);
  });

  test.each([
    [401, 2],
    [404, 2],
    [400, 1],
  ])("after a status %i, %i requests", async (status, attempts) => {
    server.reply(failing(status));
    if (attempts === 2) other.reply(textReply("ok"));
    expect(outcomeOf(await ask({ request: { profiles: chain() } }))).toMatchObject({ attempts });
  });

  test("a request that one provider cannot express may be sent to another", async () => {
    other.reply(textReply("ok"));
    const body = ({ modelId }: ModelProfile) => {
      if (modelId === "m") throw new DramatisError("UNSUPPORTED", "No pictures.");
      return { model: modelId };
    };
    expect(outcomeOf(await ask({ request: { profiles: chain(), body } }))).toMatchObject({
      ok: true,
      attempts: 1,
    });
    const deltas = await ask({ request: { body } });
    expect(outcomeOf(deltas)).toMatchObject({ errorCategory: "validation", attempts: 0 });
  });
});

describe("breakers and limits of hosts", () => {
  test("a failing host is skipped for a while, and then probed", async () => {
    const guards = new HostGuards(clock, {
      breaker: { failures: 3, coolDownMs: 5_000 },
      concurrency: { concurrent: 1, queued: 0 },
    });
    const options = { guards, resilience: { maxAttempts: 1 } };
    server.reply(...many(3, failing(500)));
    for (let n = 0; n < 3; n++) await ask({ options });
    const deltas = await ask({ options });
    expect(deltas[0]).toMatchObject({
      type: "error",
      error: { category: "transient", retriable: true, retryAfterMs: 5_000 },
    });
    expect(outcomeOf(deltas)).toMatchObject({ attempts: 0 });
    expect(sent()).toBe(3);

    other.reply(textReply("ok"));
    const elsewhere = { profiles: [profileOf(other)] } as const;
    expect(outcomeOf(await ask({ options, request: elsewhere }))).toMatchObject({ ok: true });

    clock.pass(5_000);
    server.reply(textReply("ok"), textReply("ok"));
    expect(outcomeOf(await ask({ options }))).toMatchObject({ ok: true });
    expect(outcomeOf(await ask({ options }))).toMatchObject({ ok: true });
  });

  test("BREAKER-7 a failing model does not affect other models of its host or other keys", async () => {
    const guards = new HostGuards(clock, { breaker: { failures: 2 } });
    const resilience = { maxAttempts: 1 };
    const askModel = (modelId: string, key = KEY) => {
      const profiles = [profileOf(server)];
      const secret = secretsOf({ OPENAI_API_KEY: key });
      const raw = createModelGateway({ secret, fetch, clock, trustedHosts: trustedHosts({ profiles }) });
      const gateway = createResilientGateway(raw, { clock, ids: seededIds(1, clock), guards, resilience });
      const request: ResilientRequest = {
        profiles: [profileOf(server, { modelId })],
        body: () => ({ model: modelId, messages: [], stream: true }),
        context,
      };
      return allOf(gateway.stream(request, new AbortController().signal)).then(outcomeOf);
    };
    server.reply(failing(500), failing(500));
    for (let n = 0; n < 2; n++) await askModel("broken");
    expect(await askModel("broken")).toMatchObject({ ok: false, attempts: 0 });
    server.reply(textReply("ok"), textReply("ok"));
    expect(await askModel("sound")).toMatchObject({ ok: true });
    expect(await askModel("broken", "another-key-0123456789")).toMatchObject({ ok: true });
    expect(await askModel("broken")).toMatchObject({ ok: false, attempts: 0 });
  });

  test("BREAKER-7 the account of a profile is a fingerprint, not its key", () => {
    const account = rawGateway().accountOf?.(profileOf(server));
    expect(account).toMatch(/^[0-9a-f]{8}$/);
    expect(KEY).not.toContain(account);
  });

  test("refusals and cancellations open no breaker", async () => {
    const guards = new HostGuards(clock, { breaker: { failures: 2 } });
    const options = { guards, resilience: { maxAttempts: 1 } };
    server.reply(failing(429), failing(401), failing(409), failing(409), textReply("ok"));
    for (let n = 0; n < 4; n++) await ask({ options });
    const controller = new AbortController();
    controller.abort();
    for (let n = 0; n < 3; n++) await ask({ options, signal: controller.signal });
    expect(outcomeOf(await ask({ options }))).toMatchObject({ ok: true });
  });

  test("BREAKER-6 a silent host only counts for callers that gave it time", async () => {
    const guards = new HostGuards(clock, { breaker: { failures: 2 } });
    const asked = async (timeoutMs: number) => {
      const profiles = [profileOf(server, { executionConfig: { timeoutMs } })] as const;
      const next = server.requests.length;
      server.reply({ kind: "hang" });
      const asking = ask({ options: { guards, resilience: { maxAttempts: 1 } }, request: { profiles } });
      await server.request(next);
      clock.fire(timeoutMs);
      return outcomeOf(await asking);
    };
    for (let n = 0; n < 3; n++) {
      expect(await asked(9_999)).toMatchObject({ errorCategory: "timeout", attempts: 1 });
    }
    for (let n = 0; n < 2; n++) {
      expect(await asked(10_000)).toMatchObject({ errorCategory: "timeout", attempts: 1 });
    }
    const options = { guards, resilience: { maxAttempts: 1 } };
    expect(outcomeOf(await ask({ options }))).toMatchObject({ errorCategory: "transient", attempts: 0 });
  });

  test("a request waits out an open breaker, if it has the time", async () => {
    const guards = new HostGuards(clock, { breaker: { failures: 1, coolDownMs: 5_000 } });
    server.reply(failing(500), textReply("ok"));
    const options = { guards, resilience: { maxAttempts: 3 } };
    expect(outcomeOf(await ask({ options }))).toMatchObject({ ok: true, attempts: 2 });
    expect(clock.slept).toEqual([250, 4_750]);
  });

  test("the AI binding has a breaker too", async () => {
    let runs = 0;
    const ai = {
      run: async () => {
        runs += 1;
        throw new Error("3040: Capacity temporarily exceeded");
      },
    };
    const failsAt = async () => {
      runs += 1;
      throw new Error("boom");
    };
    const guards = new HostGuards(clock, { breaker: { failures: 2 } });
    const call = (binding: typeof ai) => {
      const gateway = createModelGateway({ secret: () => undefined, fetch, clock, ai: binding });
      const profile = { provider: "workers-ai", modelId: "@cf/m" } as const;
      const guarded = guardGateway(gateway, { guards, ids: seededIds(3, clock) });
      return allOf(guarded.stream({ profile, body: {}, context }, new AbortController().signal));
    };
    for (let n = 0; n < 3; n++) await call(ai);
    expect(runs).toBe(3);
    for (let n = 0; n < 3; n++) await call({ run: failsAt });
    expect(runs).toBe(5);
  });

  test("calls beyond the limit wait their turn, and beyond the line fail at once", async () => {
    const guards = new HostGuards(clock, { concurrency: { concurrent: 1, queued: 1 } });
    const options = { guards, resilience: { maxAttempts: 1 } };
    const gate = newGate();
    server.reply(
      { kind: "stream", steps: [{ text: "a" }, { gate: gate.wait }, { finish: "stop" }] },
      textReply("ok"),
    );
    const first = ask({ options });
    await server.request(before);
    const second = ask({ options });
    expect(outcomeOf(await ask({ options }))).toMatchObject({ errorCategory: "rate_limit", attempts: 0 });
    expect(sent()).toBe(1);
    gate.open();
    expect(outcomeOf(await first)).toMatchObject({ ok: true });
    expect(outcomeOf(await second)).toMatchObject({ ok: true });
    expect(sent()).toBe(2);
  });

  test.each([
    { breaker: { failures: 0 } },
    { concurrency: { concurrent: 0 } },
    { breaker: { coolDownMs: 0.5 } },
  ])("%j is refused", (options) => {
    expect(() => new HostGuards(clock, options)).toThrowError(
      expect.objectContaining({ code: "INVALID_INPUT" }),
    );
  });
});
