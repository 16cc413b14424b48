/** Evals: cases, scorers, recorded replies, thresholds and baselines. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import type { Cli } from "../../src/cli/command.ts";
import { EVAL_COMMANDS } from "../../src/cli/evals.ts";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
import { defineAction, defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import { step } from "../../src/library/tasks/step.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import { RecordedReplies } from "../../src/testing/evals/recorded-replies.ts";
import { baselineOf, runEvals } from "../../src/testing/evals/run-evals.ts";
import {
  call,
  contains,
  createTestApp,
  defineEval,
  type EvalCase,
  type EvalContext,
  type EvalOutput,
  evalAgent,
  evalFiles,
  exact,
  fromJsonl,
  fromRecordings,
  json,
  judge,
  type Scorer,
  type TurnRecording,
  toolOrder,
} from "../../src/testing/index.ts";
import { errorReply, startOpenAIServer, textReply } from "../support/openai-server.ts";

const folder = mkdtempSync(join(tmpdir(), "dramatis-evals-"));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

let charges = 0;
const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  input: z.object({ a: z.number(), b: z.number() }),
  effect: "pure",
  execute: ({ a, b }) => a + b,
});
const charge = defineTool({
  name: "charge",
  description: "Charges.",
  input: z.object({ order: z.string() }),
  effect: "once",
  execute: () => `charge ${++charges}`,
});
const profile = { provider: "openai", modelId: "real", baseUrl: "http://model.test/v1" } as const;
const guide = definePersona("guide", {
  identity: { systemPrompt: "Help.", modelProfileId: "real" },
  tools: { toolIds: ["add", "charge"] },
});
const library = defineLibrary("my", {
  personas: [guide],
  tools: [add, charge],
  modelProfiles: [{ id: "real", definition: profile }],
});
const run = evalAgent({ libraries: [library] }, "guide");

/** A provider that answers each request with its number. */
function provider(text = "Live answer") {
  const counted = { calls: 0 };
  const gateway: ModelGateway = {
    async *stream() {
      counted.calls += 1;
      yield { type: "text", text };
      yield { type: "finish", reason: "stop" };
    },
  };
  return { counted, gateway };
}

const unused: EvalContext = { gateway: provider().gateway, defaultProfile: profile };

async function scoreOf(scorer: Scorer, one: Partial<EvalCase>, output: Partial<EvalOutput>): Promise<number> {
  const score = await scorer.score({ input: "", ...one }, { text: "", ...output }, unused);
  return Number(typeof score === "object" ? score.score : score);
}

test("I5 the scorers compare texts, JSON and the order of calls", async () => {
  expect(await scoreOf(exact(), { expected: "Yes." }, { text: " Yes.\n" })).toBe(1);
  expect(await scoreOf(exact("No."), { expected: "Yes." }, { text: "Yes." })).toBe(0);
  expect(await scoreOf(contains(), { expected: ["paris", "rome"] }, { text: "Paris!" })).toBe(0.5);
  expect(await scoreOf(contains("x"), {}, { text: "y" })).toBe(0);
  expect(await scoreOf(json(), { expected: { a: 1, b: 2 } }, { text: '```json\n{"b":2,"a":1}\n```' })).toBe(
    1,
  );
  expect(await scoreOf(json(), { expected: { a: 1 } }, { text: "{" })).toBe(0);
  const schema = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
  expect(await scoreOf(json(schema), {}, { output: { a: 1 } })).toBe(1);
  expect(await scoreOf(json(schema), {}, { output: { a: "1" } })).toBe(0);
  const calls = ["search", "read", "search", "write"].map((name) => ({ name, input: {} }));
  expect(await scoreOf(toolOrder(["search", "write"]), {}, { calls })).toBe(1);
  expect(await scoreOf(toolOrder(["write", "search"]), {}, { calls })).toBe(0.5);
  expect(
    await scoreOf(
      judge(() => 0.25),
      {},
      {},
    ),
  ).toBe(0.25);
});

test.each<[string, Scorer, Partial<EvalCase>]>([
  ["exact", exact(), {}],
  ["exact", exact(), { expected: null }],
  ["exact", exact(), { expected: { a: 1 } }],
  ["exact", exact(), { expected: ["a"] }],
  ["contains", contains(), {}],
  ["contains", contains(), { expected: [] }],
  ["contains", contains(), { expected: "" }],
  ["contains", contains(), { expected: { a: 1 } }],
  ["contains", contains(), { expected: ["a", null] }],
  ["contains", contains(""), {}],
  ["json", json(), {}],
])("I5 SCORER-1 %s fails a case that it cannot compare: %o", async (name, scorer, one) => {
  const answer = async () => '[object Object] null "a"';
  const data = [{ input: "", ...one }];
  const [result] = await runEvals([defineEval({ name: "one", data, run: answer, scorers: [scorer] })]);
  const problem = expect.stringContaining(`\`${name}()\``);
  expect(result).toMatchObject({ score: 0, passed: false, cases: [{ status: "failed", problem }] });
});

test("I5 SCORER-1 numbers and truth values compare as texts", async () => {
  expect(await scoreOf(exact(), { expected: 3 }, { text: "3" })).toBe(1);
  expect(await scoreOf(exact(), { expected: "" }, { text: " " })).toBe(1);
  expect(await scoreOf(contains(), { expected: [3, true] }, { text: "3 is true" })).toBe(1);
  expect(await scoreOf(json(), { expected: null }, { text: "null" })).toBe(1);
});

test("I5 EVAL-1 a JSON Lines file with recorded replies is scored without a call, and a threshold decides", async () => {
  const path = join(folder, "cases.jsonl");
  const lines = [
    { id: "sum", input: "1 + 2?", expected: "3", replies: [call("add", { a: 1, b: 2 }), "It is 3."] },
    { input: "2 + 2?", expected: "4", replies: ["It is 5."] },
  ];
  writeFileSync(path, lines.map((line) => JSON.stringify(line)).join("\n\n"));
  const scorers = [contains(), toolOrder(["add"])];
  const sums = defineEval({ name: "sums", data: fromJsonl(path), run, scorers, threshold: 0.5 });
  const [result] = await runEvals([sums]);
  expect(result).toMatchObject({ score: 0.5, passed: true, scorers: { contains: 0.5, toolOrder: 0.5 } });
  expect(result?.cases.map(({ id, scores }) => [id, scores])).toEqual([
    ["sum", { contains: 1, toolOrder: 1 }],
    ["2", { contains: 0, toolOrder: 0 }],
  ]);
  const [strict] = await runEvals([{ ...sums, threshold: 0.6 }]);
  expect(strict?.passed).toBe(false);
  const baseline = baselineOf(result === undefined ? [] : [result]);
  expect((await runEvals([sums], { baseline }))[0]).toMatchObject({ baseline: 0.5, passed: true });
  const worse = { ...sums, run: async () => "It is 3." };
  expect((await runEvals([{ ...worse, threshold: 0 }], { baseline }))[0]?.passed).toBe(false);
  writeFileSync(path, '{"input": "x"}\n{"id": 1, "input": "x"}');
  expect(() => fromJsonl(path)).toThrow(/cases\.jsonl:2/);
});

test("I5 a recording gives replies and results, so an effect does not happen again", async () => {
  const app = createTestApp({ libraries: [library] });
  app.model.script(call("charge", { order: "7" }), "Order 7 is paid.");
  const recording = app.recording(await app.send("guide", "Pay order 7"));
  expect(charges).toBe(1);
  const data = fromRecordings(recording);
  expect(data).toMatchObject([{ input: "Pay order 7", expected: "Order 7 is paid." }]);
  const paid = defineEval({ name: "paid", data, run, scorers: [exact(), toolOrder(["charge"])] });
  expect((await runEvals([paid]))[0]).toMatchObject({ score: 1, passed: true });
  expect(charges).toBe(1);
  const scripted = { recording: { ...recording, turn: { ...recording.turn, operations: [] } } };
  const lost = { ...paid, data: [{ input: "Pay order 7", ...scripted }] };
  expect((await runEvals([lost]))[0]).toMatchObject({ passed: false, cases: [{ scores: {} }] });
});

/** A shop with a `once` action behind each kind of target. */
function shopOf(sold: string[]) {
  const order = z.object({ order: z.string() });
  const pay = defineAction({
    id: "pay",
    input: order,
    effect: "once",
    execute: (given) => {
      sold.push(given.order);
      return { ok: true };
    },
  });
  const price = defineAction({
    id: "price",
    input: order,
    effect: "pure",
    execute: (given) => {
      sold.push(`price of ${given.order}`);
      return { price: 7 };
    },
  });
  const paying = defineTask({ id: "paying", input: order, steps: [step("pay", { action: pay })] });
  const pricing = defineTask({ id: "pricing", input: order, steps: [step("price", { action: price })] });
  const posting = defineTask({
    id: "posting",
    input: order,
    steps: [
      step("post", {
        action: { kind: "http.request", hosts: ["bank.example"], effect: "once" },
        inputMapping: { method: "'POST'", url: "'https://bank.example/' + input.order" },
      }),
    ],
  });
  const flow = defineWorkflow("flow", {
    input: order,
    context: z.object({ done: z.json().optional() }),
    initialNode: "pay",
    nodes: [node("pay", { task: paying, inputMapping: { order: "input.order" } })],
  });
  const described = { description: "Pays." };
  const tools = [
    defineTool({
      ...described,
      name: "by_code",
      input: order,
      effect: "once",
      approval: "always",
      execute: (given) => sold.push(given.order),
    }),
    defineTool({ ...described, name: "by_task", target: { task: paying } }),
    defineTool({
      ...described,
      name: "by_mapped_task",
      target: { task: paying },
      input: z.object({ id: z.string() }),
      inputMapping: { order: "input.id" },
    }),
    defineTool({ ...described, name: "by_request", target: { task: posting } }),
    defineTool({ ...described, name: "by_flow", target: { workflow: flow } }),
    defineTool({ ...described, name: "by_agent", target: { agent: "cashier" } }),
    defineTool({ ...described, name: "price", target: { task: pricing } }),
  ];
  const seller = definePersona("seller", {
    identity: { systemPrompt: "Sell." },
    tools: { toolIds: tools.map(({ id }) => id) },
  });
  const cashier = definePersona("cashier", {
    identity: { systemPrompt: "Pay." },
    tools: { toolIds: ["by_task"] },
  });
  return {
    libraries: [defineLibrary("shop", { personas: [seller, cashier], tools, workflows: [flow] })],
    http: (request: Request) => {
      sold.push(request.url);
      return Response.json({ ok: true });
    },
  };
}

const TARGETS = [
  call("by_code", { order: "7" }),
  call("by_task", { order: "7" }),
  call("by_mapped_task", { id: "7" }),
  call("by_request", { order: "7" }),
  call("by_flow", { order: "7" }),
  call("by_agent", { message: "Order 7", invocationMode: "delegate" }),
].map((reply) => [reply.calls?.[0]?.name ?? "", reply] as const);

test.each(TARGETS)("I5 EVALREC-1 an eval repeats no recorded call: %s", async (name, asked) => {
  const sold: string[] = [];
  const app = createTestApp(shopOf(sold));
  app.model.of("seller").script(asked, "Paid.");
  app.model.of("cashier").script(call("by_task", { order: "7" }), "Order 7 is paid.");
  const begun = await app.send("seller", "I take it.");
  for (const one of app.approvals()) await app.approve(one);
  const turn = await app.settle(begun);
  expect(turn).toMatchObject({ text: "Paid.", calls: [{ name, output: expect.anything() }] });
  expect(sold).toHaveLength(1);
  const scorer: Scorer = {
    name: "same",
    score: (_one, { calls = [] }) =>
      JSON.stringify(calls.map(({ output }) => output)) ===
      JSON.stringify(turn.calls.map(({ output }) => output)),
  };
  const data = fromRecordings(app.recording(turn));
  const paid = defineEval({
    name: "paid",
    data,
    run: evalAgent(shopOf(sold), "seller"),
    scorers: [exact(), toolOrder([name]), scorer],
  });
  expect((await runEvals([paid]))[0]).toMatchObject({ score: 1, passed: true });
  expect(sold).toHaveLength(1);
});

test("I5 EVALREC-3 equal calls of a turn get their recorded results in order, beside each other and one after another", async () => {
  charges = 0;
  const { calls: twice = [] } = call("charge", { order: "7" });
  const app = createTestApp({ libraries: [library] });
  app.model.script({ calls: [...twice, ...twice] }, call("charge", { order: "7" }), "Charged.");
  const turn = await app.send("guide", "Charge order 7 again and again.");
  const outputs = turn.calls.map(({ output }) => output);
  expect(outputs).toEqual(["charge 1", "charge 2", "charge 3"]);
  const again = await run(
    { input: "Charge order 7 again and again.", recording: app.recording(turn) },
    unused,
  );
  expect(again).toMatchObject({ calls: outputs.map((output) => ({ output })) });
  expect(charges).toBe(3);
});

test("I5 EVALREC-2 STEP-2 a tool that says `pure` over a `once` task does not run", async () => {
  const sold: string[] = [];
  const paying = defineTask({
    id: "paying",
    input: z.object({ order: z.string() }),
    effect: "once",
    execute: ({ order }) => sold.push(order),
  });
  const pay = defineTool({ name: "pay", description: "Pays.", target: { task: paying }, effect: "pure" });
  const seller = definePersona("seller", {
    identity: { systemPrompt: "Sell." },
    tools: { toolIds: ["pay"] },
  });
  const libraries = [defineLibrary("shop", { personas: [seller], tools: [pay] })];
  const app = createTestApp({ libraries });
  app.model.script(call("pay", { order: "7" }), "Paid.");
  const recording = beforeResults(app.recording(await app.send("seller", "I take it.")));
  expect(sold).toEqual(["7"]);
  const asked = evalAgent({ libraries }, "seller")({ input: "I take it.", recording }, unused);
  await expect(asked).rejects.toThrow('The recording has no result of "pay"');
  expect(sold).toEqual(["7"]);
});

/** Returns a recording that ends before the results of its first calls. */
function beforeResults({ rows, turn, ...recording }: TurnRecording): TurnRecording {
  const isEnd = ({ type }: { type: string }) => /^(?:task|tool|agent_call)\.completed$/.test(type);
  const end = rows.findIndex(({ entries }) => entries.some(isEnd));
  const cut = rows.slice(0, end + 1).flatMap(({ entries, ...row }) => {
    const last = entries.findIndex(isEnd);
    const kept = last < 0 ? entries : entries.slice(0, last);
    return kept.length === 0 ? [] : [{ ...row, entries: kept }];
  });
  const operations = turn.operations.map(({ result: _, ...operation }) => operation);
  return {
    ...recording,
    rows: cut,
    turn: { ...turn, status: "active", replies: turn.replies.slice(0, 1), operations },
  };
}

test.each(TARGETS)("I5 EVALREC-2 a call without a recorded result does not run: %s", async (name, asked) => {
  const app = createTestApp(shopOf([]));
  app.model.script(asked, "Paid.");
  app.model.of("cashier").script("No.");
  const begun = await app.send("seller", "I take it.");
  for (const one of app.approvals()) await app.approve(one);
  const recording = beforeResults(app.recording(await app.settle(begun)));
  const sold: string[] = [];
  const run = evalAgent(shopOf(sold), "seller");
  const paid = defineEval({
    name: "paid",
    data: [{ input: "I take it.", recording }],
    run,
    scorers: [exact("Paid.")],
  });
  const [result] = await runEvals([paid]);
  const problem = expect.stringContaining(`The recording has no result of "${name}"`);
  expect(result).toMatchObject({ passed: false, cases: [{ status: "needs call", problem }] });
  expect(sold).toEqual([]);
});

test("I5 EVALREC-2 a `pure` task without a recorded result runs", async () => {
  const app = createTestApp(shopOf([]));
  app.model.script(call("price", { order: "7" }), "It costs 7.");
  const recording = beforeResults(app.recording(await app.send("seller", "What does it cost?")));
  const sold: string[] = [];
  const run = evalAgent(shopOf(sold), "seller");
  await expect(run({ input: "What does it cost?", recording }, unused)).rejects.toThrow(/too few replies/);
  expect(sold).toEqual(["price of 7"]);
});

test("I5 EVALREPLY-1 a live reply is recorded, and the next run makes no call", async () => {
  const path = join(folder, "replies.json");
  const { counted, gateway } = provider();
  const scorers = [contains("live"), judge({ profile, prompt: "Is it polite?" })];
  const asked = defineEval({ name: "asked", data: [{ input: "Hi" }], run, scorers });
  const [offline] = await runEvals([asked]);
  expect(offline).toMatchObject({ passed: false, cases: [{ status: "needs call" }] });
  expect(offline?.cases[0]?.problem).toContain("openai/real");
  const first = new RecordedReplies(path);
  await runEvals([asked], { live: gateway, replies: first });
  first.save();
  expect([counted.calls, first.calls]).toEqual([2, 2]);
  const second = new RecordedReplies(path);
  const [again] = await runEvals([asked], { replies: second });
  expect(again).toMatchObject({ passed: true, scorers: { contains: 1, judge: 0 } });
  expect(second.calls).toBe(0);
});

test("I5 a judge by a model gives a score and a reason", async () => {
  const { gateway } = provider('{"score": 0.75, "reason": "Short."}');
  const scored = judge({ profile, prompt: "Is it polite?" }).score(
    { input: "Hi" },
    { text: "Hello" },
    { ...unused, gateway },
  );
  expect(await scored).toEqual({ score: 0.75, reason: "Short." });
});

test("I5 EVAL-1 the evals of files give a table, save a baseline, and fail after a regression", async () => {
  const module = join(folder, "sums.eval.mjs");
  writeFileSync(
    module,
    `export default { kind: "eval", name: "sums", data: [{ input: "x", expected: "y" }], run: async () => "y",
      scorers: [{ name: "same", score: (one, { text }) => text === one.expected }] };`,
  );
  const worse = join(folder, "worse.eval.mjs");
  writeFileSync(worse, readFileSync(module, "utf8").replace('=> "y"', '=> "z"'));
  const options = { baseline: join(folder, "baseline.json"), replies: join(folder, "none.json") };
  const { text, passed } = await evalFiles([module], { ...options, save: true });
  expect(passed).toBe(true);
  expect(text.split("\n")).toEqual([
    expect.stringMatching(/^eval +cases +scorers +score +threshold +baseline +result$/),
    expect.stringMatching(/^sums +1 +same 1\.00 +1\.00 +0\.00 +– +passed$/),
    "",
    "No model was called.",
  ]);
  expect(JSON.parse(readFileSync(options.baseline, "utf8"))).toEqual({ sums: { score: 1, cases: { 1: 1 } } });
  const regressed = await evalFiles([worse], options);
  expect(regressed.passed).toBe(false);
  expect(regressed.text).toMatch(/1\.00 \(-1\.00\) +FAILED/);
  writeFileSync(join(folder, "none.mjs"), "export const nothing = 1;");
  await expect(evalFiles([join(folder, "none.mjs")], options)).rejects.toThrow(/defineEval/);
  await expect(evalFiles([join(folder, "absent.eval.ts")], options)).rejects.toThrow(/There is no file/);
  await expect(evalFiles([module], { ...options, baseline: "missing.json" })).rejects.toThrow(
    /missing\.json/,
  );
});

test("I5 G23 the command `eval` takes files and options, and fails if an eval fails", async () => {
  writeFileSync(join(folder, "scorers.ts"), "export const name: string = 'same';");
  const module = join(folder, "cli.eval.ts");
  writeFileSync(
    module,
    `import { name } from "./scorers";
    export default { kind: "eval", name: "sums", threshold: 1, data: [{ input: "x", expected: "y" }], run: async () => "z",
      scorers: [{ name, score: (one: { expected: string }, output: { text: string }) => output.text === one.expected }] };`,
  );
  const replies = join(folder, "none.json");
  const [command] = EVAL_COMMANDS;
  // SAFETY: the command uses no service.
  const answer = await command?.run({} as Cli, [module], {
    replies,
    baseline: join(folder, "new.json"),
    save: "",
  });
  expect(answer).toMatchObject({ failed: true, value: [{ name: "sums", passed: false }] });
  expect(answer?.text).toContain("same 0.00");
});

/** Writes a module with an eval of the agent "plain", which names no model profile, and of the agent "mini", which names one. */
function agentModule(name: string, agent: "plain" | "mini"): string {
  const path = join(folder, `${name}.eval.ts`);
  const source = (file: string) => JSON.stringify(join(import.meta.dirname, "../../src", file));
  writeFileSync(
    path,
    `import { defineLibrary, definePersona } from ${source("library/define/define.ts")};
    import { contains, defineEval, evalAgent } from ${source("testing/index.ts")};
    const library = defineLibrary("my", {
      personas: [
        definePersona("plain", { identity: { systemPrompt: "Help." } }),
        definePersona("mini", { identity: { systemPrompt: "Help.", modelProfileId: "mini" } }),
      ],
      modelProfiles: [{ id: "mini", definition: { provider: "openai", modelId: "gpt-4.1-mini" } }],
    });
    export default defineEval({
      name: "${name}", data: [{ input: "Hi" }], run: evalAgent({ libraries: [library] }, "${agent}"), scorers: [contains("live")],
    });`,
  );
  return path;
}

function withoutModels(): void {
  for (const name of ["DRAMATIS_MODEL", "OPENAI", "ANTHROPIC", "GEMINI"])
    for (const end of name === "DRAMATIS_MODEL" ? [""] : ["_API_KEY", "_BASE_URL"])
      vi.stubEnv(name + end, "");
}

test("I5 EVALLIVE-1 EVALREPLY-2 live calls use the model, the base URL and the key of the environment", async () => {
  withoutModels();
  await using server = await startOpenAIServer({ script: () => textReply("A live answer") });
  vi.stubEnv("OPENAI_BASE_URL", server.baseUrl);
  vi.stubEnv("OPENAI_API_KEY", "sk-1");
  const modules = [agentModule("plain", "plain"), agentModule("mini", "mini")];
  const files = { replies: join(folder, "live.json") };
  const { results } = await evalFiles(modules, { ...files, live: true });
  expect(results).toMatchObject([
    { score: 1, passed: true },
    { score: 1, passed: true },
  ]);
  expect(server.requests.map(({ headers, body }) => [headers.authorization, body.model])).toEqual(
    Array(2).fill(["Bearer sk-1", "gpt-4.1-mini"]),
  );
  expect(server.requests[0]?.body).not.toHaveProperty("prompt_cache_key");

  // Without a setting, the recorded replies answer.
  withoutModels();
  vi.stubEnv("ANTHROPIC_API_KEY", "sk-2");
  const again = await evalFiles(modules, files);
  expect([again.passed, again.text]).toEqual([true, expect.stringContaining("No model was called.")]);
});

test("I5 EVALLIVE-1 a live eval without a model names the variables to set", async () => {
  withoutModels();
  const files = { replies: join(folder, "absent.json") };
  const { passed, text } = await evalFiles([agentModule("unset", "plain")], { ...files, live: true });
  expect(passed).toBe(false);
  expect(text).toContain("Set OPENAI_API_KEY or DRAMATIS_MODEL.");
});

test("I5 EVALAGENT-1 a turn that fails or waits is a failed case with its reason", async () => {
  withoutModels();
  const script = () => errorReply(400, { message: "The context is too long." });
  await using server = await startOpenAIServer({ script });
  vi.stubEnv("OPENAI_BASE_URL", server.baseUrl);
  const files = { replies: join(folder, "failed.json") };
  const { passed, text } = await evalFiles([agentModule("failing", "plain")], { ...files, live: true });
  expect(passed).toBe(false);
  expect(text).toMatch(/failing 1 failed: MODEL_FAILED: .*The context is too long\./);

  const pay = defineTool({
    ...{ name: "pay", description: "Pays.", input: z.object({}), effect: "once", approval: "always" },
    execute: () => "paid",
  });
  const clerk = definePersona("clerk", { identity: { systemPrompt: "Pay." }, tools: { toolIds: ["pay"] } });
  const bank = defineLibrary("bank", { personas: [clerk], tools: [pay] });
  const data = [{ input: "Pay", replies: [call("pay"), "Paid."] }];
  const asked = defineEval({
    name: "asked",
    data,
    run: evalAgent({ libraries: [bank] }, "clerk"),
    scorers: [exact("")],
  });
  const [result] = await runEvals([asked]);
  expect(result).toMatchObject({ passed: false, cases: [{ status: "failed" }] });
  expect(result?.cases[0]?.problem).toContain('a decision about "pay"');
});

test("I5 an eval without a name or a scorer is refused", () => {
  const options = { name: "one", data: [], run, scorers: [exact()] };
  expect(() => defineEval({ ...options, scorers: [] })).toThrow(/scorers/);
  expect(() => defineEval({ ...options, threshold: 2 })).toThrow(/threshold/);
  expect(() => defineEval({ ...options, scorers: [exact(), exact()] })).toThrow(/two scorers/);
  expect(() => toolOrder([])).toThrow(/Name the tools/);
});

test("I5 EVAL-2 EVALAGENT-2 an eval that proves nothing is refused or fails", async () => {
  const one = { input: "Hi", replies: ["Yes."] };
  const asked = defineEval({ name: "asked", data: [one], run, scorers: [exact("No.")] });
  expect((await runEvals([asked]))[0]).toMatchObject({ score: 0, passed: false });
  await expect(runEvals([{ ...asked, data: [] }])).rejects.toThrow(/no cases/);
  const twice = [
    { ...one, id: "a" },
    { ...one, id: "a" },
  ];
  await expect(runEvals([{ ...asked, data: twice }])).rejects.toThrow(/two cases have the id "a"/);
  const problemOf = async (more: Partial<typeof asked>) =>
    (await runEvals([{ ...asked, ...more }]))[0]?.cases[0]?.problem;
  expect(await problemOf({ scorers: [{ name: "own", score: () => 7 }] })).toContain('"own" gave 7');
  const wrongCall = [{ input: "Hi", replies: [call("nope"), "Yes."] }];
  expect(await problemOf({ data: wrongCall })).toContain("has no such tool");
  const app = createTestApp({ libraries: [library] });
  app.model.reply("Yes.");
  const recording = app.recording(await app.send("guide", "Hi"));
  const other = { ...recording, turn: { ...recording.turn, agentId: "night" } };
  expect(await problemOf({ data: fromRecordings(other) })).toContain('of the agent "night", not of "guide"');
});
