/** The action `llm`: its texts, its attempts and its answers, by the real adapters and gateway. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEmbeddingGateway } from "../../src/adapters/gateway/embeddings.ts";
import {
  adapterFor,
  createModelGateway,
  type ModelProfile,
  OFFLINE_PROFILE,
  trustedHosts,
} from "../../src/adapters/index.ts";
import { runLlm } from "../../src/agents/executor/actions/llm.ts";
import type { PinnedLlmAction } from "../../src/agents/executor/actions/llm-texts.ts";
import type { ModelRun } from "../../src/agents/executor/actions/ports.ts";
import { TaskRecord } from "../../src/agents/executor/steps/task-record.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { estimateTokens } from "../../src/memory/session/tokens.ts";
import type { Allowance } from "../../src/model/spending.ts";
import type { PromptDefinition } from "../../src/protocol/task-definition.ts";
import type { TaskModelUsage } from "../../src/protocol/task-summary.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { Meter } from "../../src/shared/json-schema/meter.ts";
import { checkBudget } from "../../src/shared/json-schema/violations.ts";
import { clock as realClock } from "../support/gateway-calls.ts";
import {
  type ChatRequest,
  errorReply,
  newGate,
  type OpenAIServer,
  type Reply,
  startOpenAIServer,
  textReply,
  toolReply,
} from "../support/openai-server.ts";

const CONTEXT = { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "u" };
/** Timers up to this length are pauses between attempts, which tests do not wait for. */
const LONGEST_PAUSE = 60_000;

let server: OpenAIServer;
beforeAll(async () => {
  server = await startOpenAIServer();
});
afterAll(() => server.close());

interface Called {
  outcome: { result: Awaited<ReturnType<typeof runLlm>> } | { error: unknown };
  usage: TaskModelUsage | undefined;
  requests: ChatRequest[];
  pauses: number[];
}

/** Runs an action against a server that replies so. */
async function call(
  action: Partial<PinnedLlmAction>,
  input: Json,
  replies: Reply[],
  changes: Partial<ModelRun> & { profile?: Partial<ModelProfile>; allowance?: Allowance } = {},
): Promise<Called> {
  const { profile: changed, allowance, ...run } = changes;
  const record = new TaskRecord({ library: "l", id: "t", version: 1 }, realClock, allowance);
  const profile: ModelProfile = {
    provider: "openai",
    modelId: "gpt-test",
    baseUrl: server.baseUrl,
    ...changed,
  };
  const pauses: number[] = [];
  const clock: ModelRun["clock"] = {
    now: () => realClock.now(),
    timer(milliseconds, callback) {
      if (milliseconds > LONGEST_PAUSE || milliseconds < 100) return realClock.timer(milliseconds, callback);
      pauses.push(milliseconds);
      return realClock.timer(0, callback);
    },
  };
  const first = server.requests.length;
  server.reply(...replies);
  const ports = { secret: () => undefined, fetch, clock: realClock, trustedHosts: trustedHosts() };
  const models = {
    gateway: createModelGateway(ports),
    adapters: adapterFor,
    embeddings: createEmbeddingGateway(ports),
    defaultProfile: profile,
  };
  const outcome = await runLlm({ kind: "llm", ...action }, input, {
    models,
    requests: record,
    clock,
    context: CONTEXT,
    signal: new AbortController().signal,
    meter: checkBudget(),
    ...run,
  }).then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  );
  const { models: usage } = record.summary;
  return { outcome, usage, requests: server.requests.slice(first).map(({ body }) => body), pauses };
}

test("LLM-4 a call that is cut off in a pause has reported its usage", async () => {
  const stop = new AbortController();
  const ended = call({ template: "Hi" }, {}, [{ kind: "body", status: 500, headers: {}, body: "No." }], {
    signal: stop.signal,
    clock: {
      now: realClock.now,
      timer(milliseconds, callback) {
        if (milliseconds === 500) queueMicrotask(() => stop.abort(new Error("The time is over.")));
        return realClock.timer(milliseconds, callback);
      },
    },
  });
  const { outcome, usage, requests } = await ended;
  expect(outcome).toMatchObject({ error: { message: "The time is over." } });
  expect(requests).toHaveLength(1);
  expect(usage).toMatchObject({ calls: 1 });
});

describe("LLM-5 H4 limits", () => {
  const template = "{% for n in numbers %}{{ word }}{% endfor %}";
  const input = { word: "long ".repeat(100), numbers: Array.from({ length: 500 }, (_, n) => n) };

  test("texts that are longer than the action allows are not sent", async () => {
    const { outcome, requests } = await call({ template, maxInputTokens: 10_000 }, input, []);
    expect(outcome).toMatchObject({
      error: {
        code: "INVALID_INPUT",
        message: expect.stringMatching(/about \d+ tokens. The limit is 10000/),
      },
    });
    expect(requests).toEqual([]);
  });

  test("texts of as many tokens as it allows are", async () => {
    const template = "Some words of a message";
    const maxInputTokens = estimateTokens(template);
    const fits = await call({ template, maxInputTokens }, {}, [textReply("yes")]);
    expect(fits.outcome).toEqual({ result: { response: "yes" } });
    const beyond = await call({ template, maxInputTokens: maxInputTokens - 1 }, {}, []);
    expect(beyond.outcome).toMatchObject({ error: { code: "INVALID_INPUT" } });
  });

  test("texts of any length are sent without a limit", async () => {
    const { outcome, requests } = await call({ template }, input, [textReply("yes")]);
    expect(outcome).toEqual({ result: { response: "yes" } });
    expect(requests).toHaveLength(1);
  });

  test.each<[string, Allowance]>([
    ["tokens of texts", { tokens: 10_000 }],
    ["tokens of the answer", { tokens: 500 }],
    ["dollars", { nanoDollars: 1_000_000 }],
    ["requests", { modelCalls: 0 }],
  ])("a request that would need more %s than are left is not sent", async (what, allowance) => {
    const texts = what === "tokens of texts" ? { template } : { template: "Hi" };
    const profile = { costPer1kInput: 1, costPer1kOutput: 1 };
    const { outcome, requests, usage } = await call({ ...texts, maxOutputTokens: 500 }, input, [], {
      allowance,
      profile,
    });
    expect(outcome).toMatchObject({
      error: { code: "BUDGET_EXCEEDED", message: expect.stringMatching(/up to \d+ tokens.*maxInputTokens/) },
    });
    expect(requests).toEqual([]);
    expect(usage).toBeUndefined();
  });

  test("a failure is the result if no further attempt is allowed", async () => {
    const busy = errorReply(503, { message: "Busy." });
    const { outcome, requests, pauses } = await call({ template: "Hi" }, {}, [busy, busy], {
      allowance: { modelCalls: 2 },
    });
    expect(outcome).toMatchObject({ error: { message: expect.stringMatching(/The model failed: .*503/) } });
    expect(requests).toHaveLength(2);
    expect(pauses).toEqual([500]);
  });

  test("the offline model has the limit of its answer, as any other", async () => {
    const { outcome } = await call({ template: "Hi", maxOutputTokens: 500 }, {}, [], {
      profile: OFFLINE_PROFILE,
      allowance: { tokens: 600 },
    });
    expect(outcome).toMatchObject({ result: { response: expect.any(String) } });
  });

  test("the schema of the answer counts, which is sent, too", async () => {
    const outputSchema = { type: "object", description: "word ".repeat(2_000) };
    const allowance = { tokens: 1_000 };
    const limited = { maxOutputTokens: 500, template: "Hi" };
    const { outcome } = await call({ ...limited, outputSchema }, {}, [], { allowance });
    expect(outcome).toMatchObject({ error: { code: "BUDGET_EXCEEDED" } });
    expect((await call(limited, {}, [textReply("yes")], { allowance })).requests).toHaveLength(1);
  });
});

async function failure(...args: Parameters<typeof call>): Promise<ToolError> {
  const { outcome } = await call(...args);
  if (!("error" in outcome)) throw new Error("It did not fail.");
  expect(outcome.error).toBeInstanceOf(ToolError);
  // SAFETY: checked above.
  return outcome.error as ToolError;
}

const usageReply = (text: string, input: number, output: number): Reply => ({
  kind: "stream",
  steps: [
    { text },
    { finish: "stop" },
    { usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } },
  ],
});

const PROMPT: PromptDefinition = {
  systemPrompt: "Speak to {{ user.name }}.",
  template: "Question: {{ question }}{% for tag in tags %} #{{ tag }}{% endfor %}",
  requires: {
    type: "object",
    required: ["question"],
    properties: { question: { type: "string" }, user: { type: "object" }, tags: { type: "array" } },
  },
  examples: [
    { input: { question: "1 + 1?" }, output: "2" },
    { input: { question: "A list?", tags: ["x"] }, output: { items: [1] } },
  ],
};
const SCHEMA: JsonObject = {
  type: "object",
  required: ["answer"],
  properties: { answer: { type: "integer" } },
  additionalProperties: false,
};

describe("LLM-1 F13 texts and values", () => {
  test("a prompt gives instructions, examples and the message", async () => {
    const input = { question: "2 + 2?", user: { name: "Ann" }, tags: ["a", "b"] };
    const { outcome, requests } = await call({ prompt: PROMPT }, input, [textReply("fo", "ur")]);
    expect(outcome).toMatchObject({ result: { response: "four" } });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      model: "gpt-test",
      max_tokens: 4_096,
      messages: [
        { role: "system", content: "Speak to Ann." },
        { role: "user", content: "Question: 1 + 1?" },
        { role: "assistant", content: "2" },
        { role: "user", content: "Question: A list? #x" },
        { role: "assistant", content: '{"items":[1]}' },
        { role: "user", content: "Question: 2 + 2? #a #b" },
      ],
    });
    expect(requests[0]).not.toHaveProperty("tools");
    expect(requests[0]).not.toHaveProperty("response_format");
  });

  test("the action's own texts and limits win", async () => {
    const own = {
      prompt: PROMPT,
      systemPrompt: "Be short.",
      template: "Say {{ question }}",
      maxOutputTokens: 7,
    };
    const { requests } = await call(own, { question: "x" }, [textReply("y")]);
    expect(requests[0]).toMatchObject({ max_tokens: 7 });
    expect(requests[0]?.messages?.at(0)).toEqual({ role: "system", content: "Be short." });
    expect(requests[0]?.messages?.at(-1)).toEqual({ role: "user", content: "Say x" });
    const { requests: later } = await call({ template: "Hi" }, {}, [textReply("y")], {
      profile: { parameters: { max_completion_tokens: 99, temperature: 0 } },
    });
    expect(later[0]).toMatchObject({ max_completion_tokens: 99, temperature: 0 });
    expect(later[0]).not.toHaveProperty("max_tokens");
  });

  test("values are never templates", async () => {
    const hostile = "{{ secret }}{% for i in (1..9) %}x{% endfor %}";
    const { requests } = await call({ template: "<{{ question }}>" }, { question: hostile, secret: "s" }, [
      textReply("y"),
    ]);
    expect(requests[0]?.messages?.at(-1)?.content).toBe(`<${hostile}>`);
  });

  test.each<[string, Partial<PinnedLlmAction>, Json, RegExp, string]>([
    [
      "input that the prompt does not take",
      { prompt: PROMPT },
      { question: 1 },
      /\/question/,
      "INVALID_INPUT",
    ],
    ["input that is no object", { template: "Hi" }, ["a"], /must be an object/, "INVALID_INPUT"],
    ["an empty message", { template: " {{ none }} " }, {}, /message is empty/, "INVALID_INPUT"],
    ["no text at all", {}, {}, /no template and no prompt/, "EXECUTION_FAILED"],
    [
      "a template that fails",
      { template: "{{ 1 | divided_by: 0 }}" },
      {},
      /Its template: Range error/,
      "EXECUTION_FAILED",
    ],
    [
      "a filter that is unknown",
      { template: "{{ 1 | evil }}" },
      {},
      /undefined filter: evil/,
      "EXECUTION_FAILED",
    ],
  ])("%s makes no call", async (_, action, input, message, code) => {
    const { outcome, requests } = await call(action, input, []);
    expect(outcome).toMatchObject({
      error: { message: expect.stringMatching(message), code, retriable: false },
    });
    expect(requests).toHaveLength(0);
  });

  test("a template that takes too many steps makes no call", async () => {
    const template = "{% for a in list %}{% for b in list %}{% endfor %}{% endfor %}x";
    const list: Json = Array.from({ length: 1_000 }, (_, index) => index);
    const error = await failure({ template }, { list }, [], { meter: new Meter(20_000) });
    expect(error.message).toContain("takes too many steps");
  });
});

describe("LLM-2 F13 answers", () => {
  test("a schema asks for data, and the response is the data", async () => {
    const { outcome, requests } = await call({ template: "Hi", outputSchema: SCHEMA }, {}, [
      textReply('{"answer"', ": 4}"),
    ]);
    expect(outcome).toMatchObject({ result: { response: { answer: 4 } } });
    expect(requests[0]).toMatchObject({
      response_format: { type: "json_schema", json_schema: { schema: SCHEMA } },
    });
  });

  test("the prompt's schema applies if the action has no schema", async () => {
    const prompt = { template: "Hi", produces: SCHEMA };
    expect((await call({ prompt }, {}, [textReply('{"answer": 5}')])).outcome).toMatchObject({
      result: { response: { answer: 5 } },
    });
  });

  test.each<[string, Reply, RegExp, boolean]>([
    ["is not JSON", textReply("four"), /the answer is not JSON/, true],
    ["does not fit", textReply('{"answer": "4"}'), /does not fit the schema: \/answer/, true],
    ["is empty", textReply(""), /the answer is empty/, true],
    [
      "is cut off",
      { kind: "stream", steps: [{ text: '{"ans' }, { finish: "length" }] },
      /Raise maxOutputTokens/,
      false,
    ],
    [
      "is refused",
      { kind: "stream", steps: [{ text: "No" }, { finish: "content_filter" }] },
      /refused/,
      false,
    ],
    ["calls a tool", toolReply({ name: "evil", arguments: {} }), /called a tool/, true],
  ])("an answer that %s is an error", async (_, reply, message, retriable) => {
    const error = await failure({ template: "Hi", outputSchema: SCHEMA }, {}, [reply]);
    expect(error).toMatchObject({ message: expect.stringMatching(message), retriable });
  });
});

describe("LLM-3 F13 attempts", () => {
  const busy = errorReply(503, { message: "Busy." });

  test("a failure that may pass is tried three times", async () => {
    const { outcome, requests, pauses } = await call({ template: "Hi" }, {}, [busy, busy, textReply("yes")]);
    expect(outcome).toMatchObject({ result: { response: "yes" } });
    expect(requests).toHaveLength(3);
    expect(pauses).toEqual([500, 1_000]);
  });

  test("the third failure is an error that may pass", async () => {
    const { outcome, requests } = await call({ template: "Hi" }, {}, [busy, busy, busy]);
    expect(outcome).toMatchObject({
      error: { message: expect.stringMatching(/The model failed: .*503/), retriable: true },
    });
    expect(requests).toHaveLength(3);
  });

  test("Retry-After lengthens a pause", async () => {
    const limited = errorReply(429, { message: "Slow down." }, { "retry-after": "7" });
    const { pauses } = await call({ template: "Hi" }, {}, [limited, textReply("yes")]);
    expect(pauses).toEqual([7_000]);
  });

  test.each([400, 401, 404])("status %i is not tried again", async (status) => {
    const { outcome, requests } = await call({ template: "Hi" }, {}, [
      errorReply(status, { message: "No." }),
    ]);
    expect(outcome).toMatchObject({ error: { retriable: false, code: "EXECUTION_FAILED" } });
    expect(requests).toHaveLength(1);
  });

  test("a stream that breaks is tried again, without the text before", async () => {
    const cut: Reply = { kind: "stream", steps: [{ text: "half" }, { cut: true }] };
    const { outcome } = await call({ template: "Hi" }, {}, [cut, textReply("whole")]);
    expect(outcome).toMatchObject({ result: { response: "whole" } });
  });

  test("an attempt ends by its time limit", async () => {
    // A server of its own: an attempt may end before its request arrives, so a queued reply could wait for another test.
    await using stuck = await startOpenAIServer({ script: () => ({ kind: "hang" }) });
    const profile = { baseUrl: stuck.baseUrl };
    const { outcome, pauses } = await call({ template: "Hi", timeoutMs: 30 }, {}, [], { profile });
    expect(outcome).toMatchObject({ error: { code: "TIMEOUT", retriable: true } });
    expect(pauses).toHaveLength(2);
  });

  test("an abort ends the call with its reason", async () => {
    const controller = new AbortController();
    const gate = newGate();
    const number = server.requests.length;
    const calling = call({ template: "Hi" }, {}, [{ kind: "stream", steps: [{ gate: gate.wait }] }], {
      signal: controller.signal,
    });
    const request = await server.request(number);
    const reason = new Error("stopped");
    controller.abort(reason);
    expect((await calling).outcome).toEqual({ error: reason });
    await request.closed;
    gate.open();
  });
});

describe("LLM-4 F13 usage", () => {
  const prices = { costPer1kInput: 1, costPer1kOutput: 10 };

  test("tokens and cost are the provider's counts", async () => {
    const { usage } = await call({ template: "Hi" }, {}, [usageReply("yes", 20, 3)], { profile: prices });
    expect(usage).toEqual({ calls: 1, inputTokens: 20, outputTokens: 3, costUsd: 0.05 });
  });

  test("without prices there is no cost, and without a count an estimate", async () => {
    const { outcome, usage } = await call({ template: "A message of some words" }, {}, [
      textReply("and an answer"),
    ]);
    expect(outcome).toEqual({ result: { response: "and an answer" } });
    expect(usage).toEqual({
      calls: 1,
      inputTokens: expect.toSatisfy((n) => n > 3),
      outputTokens: expect.toSatisfy((n) => n > 1),
    });
  });

  test("failed attempts count, even if the last attempt fails", async () => {
    const refused: Reply = {
      kind: "stream",
      steps: [
        { text: "No" },
        { finish: "content_filter" },
        { usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 } },
      ],
    };
    const { outcome, usage } = await call(
      { template: "Hi" },
      {},
      [errorReply(500, { message: "Broken." }), refused],
      {
        profile: prices,
      },
    );
    expect(outcome).toMatchObject({ error: expect.any(ToolError) });
    expect(usage).toEqual({ calls: 2, inputTokens: 10, outputTokens: 1, costUsd: 0.02 });
  });
});

describe("the offline model", () => {
  const offline = { profile: OFFLINE_PROFILE };

  test("F13 it answers without a network, with data if a schema requires it", async () => {
    const text = await call({ template: "!say hello", ...offline }, {}, []);
    expect(text.outcome).toMatchObject({ result: { response: expect.stringContaining("hello") } });
    const data = await call({ template: "Hi", outputSchema: SCHEMA, ...offline }, {}, []);
    expect(data.outcome).toMatchObject({ result: { response: { answer: expect.any(Number) } } });
    expect(data.requests).toHaveLength(0);
  });
});
