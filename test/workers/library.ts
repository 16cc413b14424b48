/**
 * The library of the tests on workerd. Its model is the scripted provider, and a tool with a `key` reports each of its
 * runs there.
 */
import { env } from "cloudflare:workers";
import { z } from "zod";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../src/library/define/define.ts";
import { defineAction, defineTask } from "../../src/library/define/define-task.ts";
import { step } from "../../src/library/tasks/step.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import { passGate, reportRun, runsOf } from "./provider.ts";

const double = defineTool({
  name: "double",
  description: "Doubles a number.",
  input: z.object({ n: z.number() }),
  effect: "pure",
  execute: ({ n }) => ({ doubled: n * 2 }),
});

const correlation = defineTool({
  name: "correlation",
  description: "Tells the correlation id of its call, and its place in a trace.",
  input: z.object({}),
  effect: "pure",
  execute: (_input, { context: { correlationId = null, traceparent = null } }) => ({
    correlationId,
    traceparent,
  }),
});

/** A tool of this effect that reports its runs. On request it waits for a gate, or ignores its cancellation. */
const counted = (name: string, effect: ToolEffect) =>
  defineTool({
    name,
    description: `Counts its runs; ${effect}.`,
    input: z.object({
      key: z.string(),
      n: z.number().optional(),
      gate: z.string().optional(),
      deaf: z.boolean().optional(),
    }),
    effect,
    async execute(input, { operationId, signal }) {
      await reportRun(input.key, { tool: name, operationId, input });
      if (input.gate !== undefined)
        await passGate(input.key, input.gate, input.deaf === true ? undefined : signal);
      return { tool: name, n: input.n ?? 0 };
    },
  });

const fails = defineTool({
  name: "fails",
  description: "Fails as it is told.",
  input: z.object({ key: z.string(), retriable: z.boolean() }),
  effect: "idempotent",
  async execute(input, { operationId }) {
    await reportRun(input.key, { tool: "fails", operationId, input });
    throw new ToolError("The shelf is empty.", { retriable: input.retriable });
  },
});

/** A tool with temporary failures in its first runs. Its last run waits for a gate. */
const flaky = defineTool({
  name: "flaky",
  description: "Works in the end.",
  input: z.object({ key: z.string(), failures: z.int(), gate: z.string().optional() }),
  effect: "idempotent",
  retry: { maxAttempts: 3, backoffMs: 50 },
  async execute(input, { operationId, signal }) {
    await reportRun(input.key, { tool: "flaky", operationId, input });
    const { length } = await runsOf(input.key);
    if (length <= input.failures) throw new Error(`Run ${length} failed.`);
    if (input.gate !== undefined) await passGate(input.key, input.gate, signal);
    return { runs: length };
  },
});

/** As `flaky`, with a pause that no test waits for. */
const slow = defineTool({
  name: "slow_again",
  description: "Pauses for a minute after its first failure.",
  input: z.object({ key: z.string() }),
  effect: "pure",
  retry: { maxAttempts: 2, backoffMs: 60_000 },
  async execute({ key }, { operationId }) {
    await reportRun(key, { tool: "slow_again", operationId, input: {} });
    throw new ToolError("Not now.", { retriable: true });
  },
});

/** A tool with a result that arrives by a handle. It reports the handle as an input of its run. */
const deferring = (name: string, effect: ToolEffect, options: { async?: true } = {}) =>
  defineTool({
    name,
    ...options,
    description: `Gives its result later; ${effect}.`,
    input: z.object({ key: z.string(), ms: z.int().optional(), gate: z.string().optional() }),
    effect,
    async execute({ key, ms, gate }, { operationId, defer, signal }) {
      const deferred = await defer(ms === undefined ? {} : { expiresInMs: ms });
      await reportRun(key, { tool: name, operationId, input: { handle: deferred.handle } });
      if (gate !== undefined) await passGate(key, gate, signal);
      return deferred;
    },
  });

const deferringTools = [
  deferring("pay", "once"),
  deferring("order", "idempotent"),
  deferring("peek", "pure"),
  deferring("ship", "once", { async: true }),
];

/** Tools that need an approval. */
const careful = (["transfer", "remit"] as const).map((name) =>
  defineTool({
    name,
    description: "Moves money.",
    input: z.object({ key: z.string(), to: z.string() }),
    approval: "always",
    async: name === "remit",
    async execute(input, { operationId }) {
      await reportRun(input.key, { tool: name, operationId, input });
      return `Paid ${input.to}.`;
    },
  }),
);

const big = defineTool({
  name: "big",
  description: "Returns a text of this many characters.",
  input: z.object({ size: z.int(), key: z.string().optional(), gate: z.string().optional() }),
  effect: "idempotent",
  async execute({ size, key, gate }) {
    if (key !== undefined && gate !== undefined) await passGate(key, gate);
    return "x".repeat(size);
  },
});

/** A tool that reports its progress, and waits for a gate in between. */
const stepping = (name: string, effect: ToolEffect) =>
  defineTool({
    name,
    description: `Goes in two steps; ${effect}.`,
    input: z.object({ key: z.string(), gate: z.string() }),
    effect,
    async execute({ key, gate }, { progress, signal }) {
      progress({ done: 1, of: 2 });
      await passGate(key, gate, signal);
      progress({ done: 2, of: 2 });
      return "done";
    },
  });

const counter = defineTool({
  name: "counter",
  description: "Counts up in the conversation's own memory.",
  input: z.object({}),
  effect: "once",
  async execute(_, { state }) {
    const before = await state.get("count");
    const count = typeof before === "number" ? before + 1 : 1;
    await state.put("count", count);
    return { count };
  },
});

/** Operations of `patient` with an aborted signal. */
export const cancelledOperations = new Set<string>();

/** A tool that runs until its call is cancelled. */
const patient = defineTool({
  name: "patient",
  description: "Waits.",
  input: z.object({ key: z.string() }),
  effect: "idempotent",
  async execute({ key }, { operationId, signal }) {
    signal.addEventListener("abort", () => cancelledOperations.add(operationId));
    await reportRun(key, { tool: "patient", operationId, input: {} });
    await new Promise(() => undefined);
  },
});

/** A tool that runs in the background, reports its progress, and waits for a gate. */
const job = (name: string, effect: ToolEffect) =>
  defineTool({
    name,
    description: `Runs in the background; ${effect}.`,
    input: z.object({ key: z.string(), gate: z.string() }),
    effect,
    async: true,
    async execute({ key, gate }, { operationId, progress, signal }) {
      signal.addEventListener("abort", () => cancelledOperations.add(operationId));
      await reportRun(key, { tool: name, operationId, input: { gate } });
      progress({ waits: gate });
      await passGate(key, gate, signal);
      return `Result of ${gate}.`;
    },
  });

/** A tool that never answers in time. */
const hang = defineTool({
  name: "hang",
  description: "Never answers.",
  input: z.object({}),
  effect: "idempotent",
  timeoutMs: 100,
  execute: () => new Promise(() => undefined),
});

const jobs = [job("deliver", "once"), job("research", "idempotent")];

const tools = [
  patient,
  double,
  counted("look_up", "pure"),
  counted("save", "idempotent"),
  counted("charge", "once"),
  fails,
  big,
  stepping("march", "once"),
  stepping("browse", "pure"),
  counter,
];
const toolIds = tools.map(({ id }) => id);
const systemPrompt = "You are a test.";

/** A hook that asks the model in its own words. */
const assemble = defineTask({
  id: "assemble",
  input: z.looseObject({ user_message: z.string(), recent_turns: z.array(z.json()) }),
  output: z.looseObject({ messages: z.array(z.json()) }),
  effect: "pure",
  execute: ({ user_message, recent_turns }) => ({
    model: "scripted",
    stream: true,
    seed: recent_turns.length,
    messages: [{ role: "user", content: user_message }],
  }),
});

/** A hook with a request that offers the tools of the cycle. */
const assembleTools = defineTask({
  id: "assemble_tools",
  input: z.looseObject({
    user_message: z.string(),
    tool_definitions: z.array(z.object({ name: z.string(), description: z.string(), inputSchema: z.json() })),
  }),
  output: z.looseObject({ messages: z.array(z.json()) }),
  effect: "pure",
  execute: ({ user_message, tool_definitions }) => ({
    model: "scripted",
    stream: true,
    messages: [{ role: "user", content: user_message }],
    tools: tool_definitions.map(({ name, description, inputSchema: parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    })),
  }),
});

/** A hook that shows the model the last text of each recent turn, and the active turns. */
const replayRecent = defineTask({
  id: "replay_recent",
  input: z.looseObject({
    user_message: z.string(),
    recent_turns: z.array(z.object({ messages: z.array(z.looseObject({ content: z.string() })) })),
    active_turns: z.array(z.looseObject({ turn_id: z.string() })),
  }),
  output: z.looseObject({ messages: z.array(z.json()) }),
  effect: "pure",
  execute: ({ user_message, recent_turns, active_turns }) => {
    const recent = recent_turns.map(({ messages }) => messages.at(-1)?.content ?? "");
    const content = JSON.stringify({ recent, active: active_turns.map(({ turn_id }) => turn_id) });
    return {
      model: "scripted",
      stream: true,
      messages: [
        { role: "system", content },
        { role: "user", content: user_message },
      ],
    };
  },
});

/** A task of steps, for tools by API. */
const bill = defineTask({
  id: "bill",
  input: z.object({ order: z.string(), strict: z.boolean(), prices: z.string().default("") }),
  output: z.object({ total: z.number(), checked: z.array(z.string()) }),
  steps: [
    step("load", {
      action: defineAction({
        id: "load",
        input: z.object({ order: z.string() }),
        effect: "pure",
        execute: ({ order }, { operationId }) => ({
          order,
          prices: [2, 3],
          by: operationId.split("/")[1] ?? "",
        }),
      }),
      outputMapping: { "state.order": "result" },
    }),
    step("check", {
      action: defineAction({
        id: "check",
        input: z.object({ order: z.string() }),
        effect: "pure",
        execute: ({ order }) => {
          throw new ToolError(`There is no order "${order}".`, { code: "NOT_FOUND" });
        },
      }),
      condition: { if: "input.strict" },
    }),
    step("prices", {
      action: { kind: "http.request", hosts: [new URL(env.PROVIDER_CONTROL_URL).host], effect: "pure" },
      condition: { if: "input.prices != ''" },
      inputMapping: { url: "input.prices" },
      outputMapping: { "state.order.prices": "result.body" },
    }),
    step("sum", {
      action: { kind: "update_context", values: { total: "state.order.prices.sum()" } },
      outputMapping: { "output.total": "result.total", "output.checked": "[state.order.by]" },
    }),
  ],
});

/** A hook that remembers the conversation, unless its input makes it fail. */
const remember = defineTask({
  id: "remember",
  input: z.looseObject({ agent_message: z.string() }),
  effect: "idempotent",
  execute: ({ agent_message }) => {
    if (agent_message === "Forget.") throw new ToolError("The store is away.");
    return [{ op: "write", content: agent_message, type: "fact" }];
  },
});

/** An action that must not run twice, for tasks by API. */
const charge = defineAction({
  id: "charge",
  input: z.looseObject({}),
  effect: "once",
  execute: () => "charged",
});

export const testLibrary = defineLibrary("test", {
  tasks: [assemble, assembleTools, replayRecent, remember, bill],
  actions: [charge],
  modelProfiles: [
    defineModelProfile("scripted", { provider: "openai", modelId: "scripted", baseUrl: env.PROVIDER_URL }),
    defineModelProfile("priced", {
      provider: "openai",
      modelId: "scripted",
      baseUrl: env.PROVIDER_URL,
      costPer1kInput: 0.15,
      costPer1kOutput: 0.6,
    }),
    defineModelProfile("failing", {
      provider: "openai",
      modelId: "failing",
      baseUrl: env.PROVIDER_URL,
      fallbacks: ["test/scripted"],
    }),
    defineModelProfile("foreign", {
      provider: "anthropic",
      modelId: "foreign",
      baseUrl: env.PROVIDER_URL,
      fallbacks: ["test/scripted"],
    }),
    defineModelProfile("hasty", {
      provider: "openai",
      modelId: "scripted",
      baseUrl: env.PROVIDER_URL,
      executionConfig: { timeoutMs: 1_000 },
    }),
  ],
  personas: [
    definePersona("plain", { identity: { systemPrompt, modelProfileId: "scripted" } }),
    definePersona("handy", { identity: { systemPrompt, modelProfileId: "scripted" }, tools: { toolIds } }),
    definePersona("titler", {
      identity: { systemPrompt, modelProfileId: "scripted" },
      titles: { modelProfileId: "priced" },
    }),
    definePersona("persistent", {
      identity: { systemPrompt, modelProfileId: "scripted" },
      tools: { toolIds: ["flaky", "slow_again", "fails"] },
    }),
    definePersona("busy", {
      identity: { systemPrompt, modelProfileId: "scripted" },
      tools: { toolIds: [...jobs.map(({ id }) => id), "double"] },
    }),
    definePersona("buyer", {
      identity: { systemPrompt, modelProfileId: "scripted" },
      tools: { toolIds: deferringTools.map(({ id }) => id) },
    }),
    definePersona("careful", {
      identity: { systemPrompt, modelProfileId: "scripted" },
      tools: { toolIds: [...careful.map(({ id }) => id), "double"] },
    }),
    definePersona("brief", {
      identity: { systemPrompt, modelProfileId: "scripted" },
      tools: { toolIds, constraints: { maxMovesPerTurn: 2 } },
    }),
    definePersona("priced", { identity: { systemPrompt, modelProfileId: "priced" } }),
    definePersona("backed", { identity: { systemPrompt, modelProfileId: "failing" } }),
    definePersona("crossed", {
      identity: { systemPrompt, modelProfileId: "foreign" },
      tools: { toolIds: ["double"] },
    }),
    definePersona("hasty", { identity: { systemPrompt, modelProfileId: "hasty" } }),
  ],
  tools: [...tools, hang, ...deferringTools, ...careful, correlation, flaky, slow, ...jobs],
});
