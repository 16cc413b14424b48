/** The action `llm.embed`, by the real gateway: an OpenAI-compatible server on loopback, a Workers AI binding, and the hash. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  compatible,
  HASH_DIMENSIONS,
  HASH_MODEL,
  hashEmbedding,
} from "../../src/adapters/formats/offline/embedding.ts";
import { createEmbeddingGateway } from "../../src/adapters/gateway/embeddings.ts";
import type { GatewayPorts } from "../../src/adapters/gateway/ports.ts";
import {
  adapterFor,
  createModelGateway,
  type ModelProfile,
  OFFLINE_PROFILE,
  secretsOf,
  trustedHosts,
} from "../../src/adapters/index.ts";
import { MAX_EMBEDDED_LENGTH, MAX_HASHED_LENGTH, runEmbed } from "../../src/agents/executor/actions/embed.ts";
import { TaskRecord } from "../../src/agents/executor/steps/task-record.ts";
import { MAX_EMBEDDED_TEXTS } from "../../src/library/tasks/task-limits.ts";
import type { Allowance } from "../../src/model/spending.ts";
import type { Json } from "../../src/shared/json.ts";
import { Meter, Spent } from "../../src/shared/json-schema/meter.ts";
import { KEY, clock as realClock } from "../support/gateway-calls.ts";
import {
  errorReply,
  jsonReply,
  type OpenAIServer,
  type RecordedRequest,
  type Reply,
  startOpenAIServer,
} from "../support/openai-server.ts";

const CONTEXT = { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "u" };

let server: OpenAIServer;
beforeAll(async () => {
  server = await startOpenAIServer();
});
afterAll(() => server.close());

/** A server that never answers. A queued reply could wait for another test, because an attempt may end before its request arrives. */
const startStuck = () => startOpenAIServer({ script: () => ({ kind: "hang" }) });

interface Options {
  profile?: ModelProfile;
  ports?: Partial<GatewayPorts>;
  replies?: Reply[];
  timeoutMs?: number;
  meter?: Meter;
  signal?: AbortSignal;
  allowance?: Allowance;
}

const served = (): ModelProfile => ({
  provider: "openai",
  modelId: "embed-test",
  baseUrl: server.baseUrl,
  costPer1kInput: 1,
  costPer1kOutput: 1,
});

async function embed(
  texts: Json,
  {
    profile,
    ports = {},
    replies = [],
    timeoutMs,
    signal,
    allowance,
    meter = new Meter(250_000),
  }: Options = {},
) {
  const first = server.requests.length;
  server.reply(...replies);
  const pauses: number[] = [];
  const all = { secret: () => undefined, fetch, clock: realClock, ...ports };
  const models = {
    gateway: createModelGateway(all),
    adapters: adapterFor,
    embeddings: createEmbeddingGateway(all),
    defaultProfile: OFFLINE_PROFILE,
  };
  const action = { kind: "llm.embed" as const, ...(profile && { profile }), ...(timeoutMs && { timeoutMs }) };
  const record = new TaskRecord({ library: "l", id: "t", version: 1 }, realClock, allowance);
  const outcome = await runEmbed(
    action,
    { texts },
    {
      models,
      requests: record,
      context: CONTEXT,
      meter,
      signal: signal ?? new AbortController().signal,
      clock: {
        now: realClock.now,
        timer(milliseconds, callback) {
          pauses.push(milliseconds);
          return realClock.timer(0, callback);
        },
      },
    },
  ).then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  );
  return { outcome, usage: record.summary.models, pauses, requests: server.requests.slice(first) };
}

function inputOf({ input }: RecordedRequest["body"]): string[] {
  // SAFETY: the adapter sends texts.
  return input as string[];
}

const vectorsReply = (vectors: unknown[], tokens = 5): Reply =>
  jsonReply({
    object: "list",
    model: "embed-test-2",
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });

describe("EMBEDACT-1 F13 vectors of an OpenAI-compatible server", () => {
  test("are in the order of the texts, with the model's name and the usage", async () => {
    const reply = jsonReply({
      model: "embed-test-2",
      data: [
        { index: 1, embedding: [0.5, 0.25] },
        { index: 0, embedding: [0.123456789012345, -1] },
      ],
      usage: { prompt_tokens: 20, total_tokens: 20 },
    });
    const { outcome, usage, requests } = await embed(["one", "two"], { profile: served(), replies: [reply] });
    expect(outcome).toEqual({
      result: {
        vectors: [
          [0.12345679, -1],
          [0.5, 0.25],
        ],
        model: "embed-test-2",
        dimensions: 2,
      },
    });
    expect(usage).toEqual({ calls: 1, inputTokens: 20, outputTokens: 0, costUsd: 0.02 });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.path).toBe("/v1/embeddings");
    expect(requests[0]?.body).toEqual({ model: "embed-test", input: ["one", "two"] });
    expect(requests[0]?.headers.authorization).toBeUndefined();
  });

  test("the key is sent to trusted hosts only, and parameters are sent, too", async () => {
    const profile = { ...served(), parameters: { dimensions: 2 } };
    const secret = secretsOf({ OPENAI_API_KEY: KEY });
    const trusted = trustedHosts({ profiles: [profile] });
    const sent = await embed(["a"], {
      profile,
      ports: { secret, trustedHosts: trusted },
      replies: [vectorsReply([[1, 2]])],
    });
    expect(sent.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(sent.requests[0]?.body).toMatchObject({ dimensions: 2 });
    const refused = await embed(["a"], { profile, ports: { secret, trustedHosts: trustedHosts() } });
    expect(refused.requests).toHaveLength(0);
    expect(refused.outcome).toMatchObject({
      error: { retriable: false, message: expect.stringContaining("does not trust that host") },
    });
  });
});

describe("EMBEDACT-2 F13 batches and attempts", () => {
  test("many texts are several requests", async () => {
    const script = ({ body }: RecordedRequest) =>
      vectorsReply(inputOf(body).map((text) => [Number(text), 1]));
    await using many = await startOpenAIServer({ script });
    const texts = Array.from({ length: 150 }, (_, index) => `${index}`);
    const { outcome, usage } = await embed(texts, { profile: { ...served(), baseUrl: many.baseUrl } });
    expect(many.requests.map(({ body }) => inputOf(body).length)).toEqual([64, 64, 22]);
    expect(outcome).toMatchObject({
      result: { vectors: texts.map((text) => [Number(text), 1]), dimensions: 2 },
    });
    expect(usage).toMatchObject({ calls: 3, inputTokens: 15 });
  });

  test("a failure that may pass is tried again", async () => {
    const replies = [
      errorReply(500, { message: "Broken." }),
      errorReply(503, { message: "Busy." }),
      vectorsReply([[1]]),
    ];
    const { outcome, requests, pauses } = await embed(["a"], { profile: served(), replies });
    expect(outcome).toMatchObject({ result: { vectors: [[1]] } });
    expect(requests).toHaveLength(3);
    expect(pauses).toEqual([500, 1_000]);
  });

  test("EMBED-3 F13 another failure is not retried, and its error has no key", async () => {
    const echo = errorReply(400, { message: `No model for ${KEY}` });
    const profile = served();
    const ports = {
      secret: secretsOf({ OPENAI_API_KEY: KEY }),
      trustedHosts: trustedHosts({ profiles: [profile] }),
    };
    const { outcome, requests } = await embed(["a"], { profile, ports, replies: [echo] });
    expect(requests).toHaveLength(1);
    expect(outcome).toMatchObject({
      error: { retriable: false, message: expect.stringContaining("answered 400") },
    });
    expect(JSON.stringify(outcome)).not.toContain(KEY);
    expect(String("error" in outcome ? outcome.error : "")).not.toContain(KEY);
  });

  test("an attempt ends by its time limit, and a call by an abort", async () => {
    await using stuck = await startStuck();
    const profile = { ...served(), baseUrl: stuck.baseUrl };
    const slow = await embed(["a"], { profile, timeoutMs: 20 });
    expect(slow.outcome).toMatchObject({ error: { code: "TIMEOUT", retriable: true } });
    const controller = new AbortController();
    const number = stuck.requests.length;
    const calling = embed(["a"], { profile, signal: controller.signal });
    await stuck.request(number);
    const reason = new Error("stopped");
    controller.abort(reason);
    expect((await calling).outcome).toEqual({ error: reason });
  });
});

describe("LLM-5 LLM-4 H4 the budget of the call", () => {
  test("a request that needs more than is left is not sent", async () => {
    const long = ["word ".repeat(1_000)];
    const { outcome, requests } = await embed(long, { profile: served(), allowance: { tokens: 1_000 } });
    expect(outcome).toMatchObject({ error: { code: "BUDGET_EXCEEDED" } });
    expect(requests).toEqual([]);
  });

  test("a failure is the result if no further attempt is allowed", async () => {
    const busy = errorReply(503, { message: "Busy." });
    const { outcome, requests, pauses } = await embed(["a"], {
      profile: served(),
      replies: [busy],
      allowance: { modelCalls: 1 },
    });
    expect(outcome).toMatchObject({ error: { message: expect.stringMatching(/The model failed: .*503/) } });
    expect(requests).toHaveLength(1);
    expect(pauses).toEqual([]);
  });

  test("usage is estimated if a provider does not count it, or does not answer in time", async () => {
    const uncounted = jsonReply({ model: "m", data: [{ index: 0, embedding: [1] }] });
    const { usage } = await embed(["some words"], { profile: served(), replies: [uncounted] });
    expect(usage).toMatchObject({ calls: 1, inputTokens: expect.toSatisfy((n) => n > 2) });
    await using stuck = await startStuck();
    const slow = await embed(["some words"], {
      profile: { ...served(), baseUrl: stuck.baseUrl },
      timeoutMs: 20,
    });
    expect(slow.usage).toMatchObject({ calls: 3, inputTokens: expect.toSatisfy((n) => n > 6) });
  });
});

describe("EMBEDACT-3 F13 the budget of the task", () => {
  const texts = Array.from({ length: 150 }, (_, index) => `text ${index + 100}`);

  test("pays for the characters and the vectors of a hash, and others run before each batch", async () => {
    const meter = new Meter(250_000);
    const { pauses } = await embed(texts, { meter });
    expect(meter.spent).toBe(150 * 8 + (150 * HASH_DIMENSIONS) / 8);
    expect(pauses).toEqual([0, 0, 0]);
    const { outcome } = await embed(texts, { meter: new Meter(1_000) });
    expect(outcome).toMatchObject({ error: expect.any(Spent) });
  });

  test("pays for the vectors of a model, and the usage counts even if the steps cannot continue", async () => {
    const vector = Array.from({ length: 800 }, () => 1);
    const options = { profile: served(), replies: [vectorsReply([vector])] };
    const meter = new Meter(100);
    await embed(["a"], { ...options, meter });
    expect(meter.spent).toBe(100);
    const { outcome, usage, pauses } = await embed(["a"], { ...options, meter: new Meter(99) });
    expect(outcome).toMatchObject({ error: { code: "INVALID_INPUT", retriable: false } });
    expect(usage).toMatchObject({ inputTokens: 5 });
    expect(pauses).toEqual([]);
  });

  test("characters that stand for others count as these", async () => {
    const ligatures = "\ufdfa".repeat(MAX_HASHED_LENGTH / 10);
    const { outcome } = await embed([ligatures]);
    expect(outcome).toMatchObject({
      error: { code: "INVALID_INPUT", message: expect.stringContaining("180000 characters") },
    });
  });

  test.each(["\u0301\u0323", "\uff9e", "\u0f71\u0f72"])("marks in a row (%j) take no time", async (marks) => {
    const text = `a${marks.repeat(MAX_HASHED_LENGTH / 4)}`;
    const { outcome } = await embed([text]);
    expect(outcome).toMatchObject({ result: { dimensions: HASH_DIMENSIONS } });
    expect(compatible("ﬁ ｶﾞ Å")).toBe("fi ガ Å");
  });

  test("a hash has fewer characters than a model", async () => {
    const { outcome } = await embed(["a".repeat(MAX_HASHED_LENGTH), "b"]);
    expect(outcome).toMatchObject({
      error: { code: "INVALID_INPUT", message: expect.stringContaining("name a `profile`") },
    });
  });
});

describe("EMBED-2 F13 an answer counts only if it has usable vectors", () => {
  test.each<[string, Reply, RegExp]>([
    ["too few", vectorsReply([[1]]), /1 vectors for 2 texts/],
    ["several lengths", vectorsReply([[1], [1, 2]]), /differ in length/],
    ["empty vectors", vectorsReply([[], []]), /are empty/],
    ["texts", vectorsReply([["1"], ["2"]]), /has no embeddings/],
    ["null", vectorsReply([[null], [1]]), /has no embeddings/],
    [
      "numbers beyond the range",
      {
        kind: "body",
        status: 200,
        headers: { "content-type": "application/json" },
        body: '{"data":[{"embedding":[1e999]},{"embedding":[1]}]}',
      },
      /no embeddings|beyond the range/,
    ],
    [
      "indexes twice",
      jsonReply({
        data: [
          { index: 0, embedding: [1] },
          { index: 0, embedding: [1] },
        ],
      }),
      /no vector for some/,
    ],
    [
      "no JSON",
      { kind: "body", status: 200, headers: { "content-type": "application/json" }, body: "hm" },
      /has no embeddings/,
    ],
    ["an answer of a chat", jsonReply({ choices: [] }), /has no embeddings/],
    [
      "a web page",
      { kind: "body", status: 200, headers: { "content-type": "text/html" }, body: "<p>" },
      /leads to a web page/,
    ],
  ])("%s", async (_, reply, message) => {
    const { outcome } = await embed(["a", "b"], { profile: served(), replies: [reply, reply, reply] });
    expect(outcome).toMatchObject({ error: { message: expect.stringMatching(message) } });
  });
});

describe("EMBED-1 F13 other sources", () => {
  const profile: ModelProfile = { provider: "workers-ai", modelId: "@cf/baai/bge-m3" };

  test("Workers AI gets the texts, and gives its vectors", async () => {
    const runs: unknown[] = [];
    const ai = {
      async run(model: string, input: Record<string, unknown>) {
        runs.push([model, input]);
        return {
          shape: [2, 2],
          data: [
            [1, 0],
            [0, 1],
          ],
        };
      },
    };
    const { outcome } = await embed(["a", "b"], { profile, ports: { ai } });
    expect(runs).toEqual([["@cf/baai/bge-m3", { text: ["a", "b"] }]]);
    expect(outcome).toMatchObject({
      result: {
        vectors: [
          [1, 0],
          [0, 1],
        ],
        model: profile.modelId,
        dimensions: 2,
      },
    });
  });

  test.each<[string, ModelProfile, RegExp]>([
    ["Workers AI without a binding", profile, /no AI binding/],
    ["a provider without embeddings", { provider: "anthropic", modelId: "x" }, /has no supported embeddings/],
    [
      "a server without a key",
      { provider: "openai", modelId: "x" },
      /The API key is missing. Set OPENAI_API_KEY/,
    ],
  ])("%s is an error", async (_, other, message) => {
    const { outcome } = await embed(["a"], { profile: other });
    expect(outcome).toMatchObject({ error: { retriable: false, message: expect.stringMatching(message) } });
  });

  test.each<[string, Json, RegExp]>([
    ["no texts", [], /\/texts/],
    ["an empty text", ["a", " "], /\/texts\/1: Must not be empty/],
    ["too many", Array.from({ length: MAX_EMBEDDED_TEXTS + 1 }, () => "a"), /\/texts/],
    ["vectors that are too long", ["a".repeat(MAX_EMBEDDED_LENGTH), "b"], /characters together/],
    ["no list", "a", /\/texts/],
  ])("%s are refused", async (_, texts, message) => {
    const { outcome } = await embed(texts);
    expect(outcome).toMatchObject({
      error: { code: "INVALID_INPUT", message: expect.stringMatching(message) },
    });
  });
});

describe("OFFEMBED-1 F13 the hash of words", () => {
  const similarity = (one: string, other: string) => {
    const [a, b] = [hashEmbedding(one), hashEmbedding(other)];
    return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
  };

  test("an action without a profile gets it, under an honest name", async () => {
    const { outcome, usage } = await embed(["Hello world", "hello, WORLD!"]);
    expect(outcome).toMatchObject({ result: { model: HASH_MODEL, dimensions: HASH_DIMENSIONS } });
    expect(usage).toBeUndefined();
    expect(similarity("Hello world", "hello, WORLD!")).toBeCloseTo(1, 4);
  });

  test("texts with common words are near each other", () => {
    const question = "How do I reset my password?";
    expect(similarity(question, "Resetting a password")).toBeGreaterThan(
      similarity(question, "The weather in Rome"),
    );
  });

  test("a property: vectors are of length 1, and equal for equal texts", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const vector = hashEmbedding(text);
        expect(vector).toHaveLength(HASH_DIMENSIONS);
        expect(Math.hypot(...vector)).toBeCloseTo(1, 3);
        expect(hashEmbedding(text)).toEqual(vector);
      }),
    );
  });
});
