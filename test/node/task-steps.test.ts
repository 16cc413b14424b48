/** Tasks of steps: their definition, their run, and the attempts of a hook that is one. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { runTool } from "../../src/agents/executor/run-tool.ts";
import { TaskAreas } from "../../src/agents/executor/steps/areas.ts";
import { checkedTool } from "../../src/library/authoring/authoring.ts";
import {
  defineLibrary,
  defineModelProfile,
  defineTool,
  type ToolContext,
} from "../../src/library/define/define.ts";
import { defineAction, definePrompt, defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { findHook } from "../../src/library/registry/hook.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import type { Task } from "../../src/library/tasks/built.ts";
import { withModels } from "../../src/library/tasks/pin.ts";
import { type Step, type StepOptions, step } from "../../src/library/tasks/step.ts";
import { MAX_STEPS, MAX_TASK_CONTEXT_LENGTH } from "../../src/library/tasks/task-limits.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import type { ExecutorReport } from "../../src/protocol/executor-api.ts";
import type { PinnedTask } from "../../src/protocol/task-definition.ts";
import { defined } from "../../src/shared/defined.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { sha256Hex } from "../../src/shared/sha256.ts";
import {
  localExecutor,
  memoryToolState,
  noHandles,
  noResults,
} from "../../src/testing/world/local-executor.ts";
import { noMemory } from "../support/no-memory.ts";
import { jsonReply, startOpenAIServer } from "../support/openai-server.ts";
import { SteeredConversation } from "../support/steered-model.ts";
import { callOf } from "../support/tools.ts";

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue(undefined));
afterEach(() => vi.restoreAllMocks());

const anything = z.looseObject({});

/** Runs a task's steps in the Executor. Returns the result and the progress; throws the error of the call. */
async function run(
  steps: readonly Step[],
  input: JsonObject = {},
  signal = new AbortController().signal,
  timeoutMs = 60_000,
) {
  const task = defineTask({ id: "task", input: anything, steps });
  const progress: unknown[] = [];
  return { result: await runTask(task, input, { signal, timeoutMs, progress }), progress };
}

/** As `run`, with a task. */
async function runTask(
  task: Task,
  input: JsonObject,
  {
    signal = new AbortController().signal,
    timeoutMs = 60_000,
    progress = [] as unknown[],
    mayReach = (_host: string): boolean => true,
    changes = {} as Partial<PinnedTask>,
  } = {},
) {
  const tools = new DeployedCode([defineLibrary("lib", { tasks: [task] })]);
  const ports = {
    tools,
    clock: systemClock,
    state: () => memoryToolState(),
    defer: noHandles,
    results: noResults(systemClock),
    baseUrl: undefined,
    mayReach,
    vectors: new Map(),
    memory: noMemory,
  };
  const pinned = await new Registry(tools).runnable({ library: "lib", id: "task" });
  const ended = await runTool(
    ports,
    {
      ...callOf("task"),
      tool: { library: "lib", id: "task", version: 1 },
      input,
      timeoutMs,
      ...(pinned.task && { task: { ...pinned.task, ...changes } }),
    },
    signal,
    {
      onProgress: (report) => void progress.push(report),
      onAbandoned: (late) => void late.catch(() => undefined),
    },
  );
  if (!("result" in ended)) throw new Error("The task deferred its result.");
  const { result, error } = ended.result;
  if (error !== undefined) throw Object.assign(new Error(error.message), error);
  return result;
}

/** The number of defined actions. Each action has a separate id. */
let actions = 0;

const code = (
  execute: (input: JsonObject, context: ToolContext) => unknown,
  more: { effect?: ToolEffect; timeoutMs?: number } = { effect: "pure" },
) =>
  defineAction({
    id: `act_${++actions}`,
    input: anything,
    ...more,
    execute: (input, context) => execute(input as JsonObject, context),
  });
const set = (values: Record<string, string>): StepOptions["action"] => ({ kind: "update_context", values });
const says = (value: unknown) => code(() => value);

describe("the steps of a task", () => {
  test("F13 STEP-5 an idempotency key holds within its tenant, task and step, and reveals none of them", async () => {
    const seen: string[] = [];
    const action = code((_, { operationId }) => {
      seen.push(operationId);
      return null;
    });
    const steps = [
      step("pay", { action, idempotencyKey: "input.key" }),
      step("send", { action, idempotencyKey: "input.key" }),
    ];
    await run(steps, { key: "o-1" });
    await run(steps.slice(0, 1), { key: "o-1" });
    expect(seen).toEqual([
      await sha256Hex("acme:lib/task/pay:o-1"),
      await sha256Hex("acme:lib/task/send:o-1"),
      seen[0],
    ]);
  });

  test("F13 copying the results of actions takes from the budget of the task: ten responses fit, gigabytes do not", async () => {
    const steps = (count: number, length: number) =>
      Array.from({ length: count }, (_, index) =>
        step(`s${index}`, { action: says("x".repeat(length)), outputMapping: { "state.n": "1" } }),
      );
    await run(steps(10, 512 * 1024));
    await expect(run(steps(5, 4 * 1024 * 1024))).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining('Step "s3"'),
    });
  });

  test("F10 STEP-3 STEP-6 run in their order, each with the writes of the earlier steps; the output is the result", async () => {
    const { result, progress } = await run(
      [
        step("load", {
          action: code(({ id }) => ({ id, prices: [2, 3] })),
          inputMapping: { id: "input.order" },
          outputMapping: { "state.order": "result", "output.id": "result.id" },
        }),
        step("sum", {
          action: set({ total: "state.order.prices.sum()" }),
          outputMapping: { "output.bill.total": "result.total", "output.bill.of": "input.order" },
        }),
      ],
      { order: "o1" },
    );
    expect(result).toEqual({ id: "o1", bill: { total: 5, of: "o1" } });
    expect(progress).toEqual([
      { step: "load", percent: 0 },
      { step: "sum", percent: 50 },
    ]);
  });

  test("STEP-6 without mappings a step gets the task's input, and the last result is the task's result", async () => {
    const { result } = await run(
      [
        step("one", { action: code(({ n }) => Number(n) + 1) }),
        step("two", { action: set({ before: "state._lastOutput", n: "input.n" }) }),
      ],
      { n: 1 },
    );
    expect(result).toEqual({ before: 2, n: 1 });
  });

  test.each([
    ["holds, and nothing else is said", { if: "input.n > 0" }, ["a", "b", "c"]],
    ["does not hold", { if: "input.n < 0" }, ["a", "c"]],
    ["holds: skip", { if: "true", then: "skip" }, ["a", "c"]],
    ["holds: succeed", { if: "true", then: "succeed" }, ["a"]],
    ["does not hold: continue", { if: "false", else: "continue" }, ["a", "b", "c"]],
  ] as const)("STEP-3 a condition that %s", async (_, condition, expected) => {
    const ran: string[] = [];
    const note = (name: string) => code(() => void ran.push(name));
    await run(
      [
        step("a", { action: note("a") }),
        step("b", { action: note("b"), condition }),
        step("c", { action: note("c") }),
      ],
      { n: 1 },
    );
    expect(ran).toEqual(expected);
  });

  test("STEP-3 a condition may end the task with a failure, and a condition without a boolean value fails its step", async () => {
    const failing = (condition: StepOptions["condition"] & object) =>
      run([step("a", { action: says(1), condition })]);
    await expect(failing({ if: "true", then: "fail" })).rejects.toThrow(
      'Step "a": Its condition ends the task',
    );
    await expect(failing({ if: "input.missing" })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: 'Step "a": Its condition is a null. It must be true or false.',
    });
  });

  test("STEP-3 a condition that ends the task applies independent of `onFailure`", async () => {
    const ran: string[] = [];
    const after = code(() => ran.push("after"));
    const ended = run([
      step("a", { action: says(1), condition: { if: "true", then: "fail" }, onFailure: "continue" }),
      step("b", { action: after }),
    ]);
    await expect(ended).rejects.toThrow('Step "a": Its condition ends the task with a failure.');
    expect(ran).toEqual([]);
  });

  test("F10 STEP-4 onFailure: abort ends the task, retry is a temporary error, continue proceeds with the error in the state", async () => {
    const broken = code(() => {
      throw new ToolError("No stock.", { code: "NOT_FOUND" });
    });
    const after = step("after", { action: set({ errors: "state._errors" }) });
    await expect(run([step("a", { action: broken }), after])).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: 'Step "a": No stock.',
      retriable: false,
    });
    await expect(run([step("a", { action: broken, onFailure: "retry" }), after])).rejects.toMatchObject({
      code: "NOT_FOUND",
      retriable: true,
    });
    expect((await run([step("a", { action: broken, onFailure: "continue" }), after])).result).toEqual({
      errors: [{ step: "a", code: "NOT_FOUND", message: 'Step "a": No stock.' }],
    });
  });

  test("STEP-4 a cancelled task does not continue, whatever its steps declare", async () => {
    const controller = new AbortController();
    const ran: string[] = [];
    const steps = [
      step("a", {
        action: code(async (_, { signal }) => {
          controller.abort(new Error("stopped"));
          signal.throwIfAborted();
        }),
        onFailure: "continue",
      }),
      step("b", { action: code(() => void ran.push("b")) }),
    ];
    await expect(run(steps, {}, controller.signal)).rejects.toMatchObject({ code: "CANCELLED" });
    expect(ran).toEqual([]);
  });

  test("STEP-5 each action has its own operation id, its own time, and no handle", async () => {
    const ids: string[] = [];
    const note = code((_, { operationId }) => void ids.push(operationId));
    await run([step("a", { action: note }), step("b", { action: note })]);
    expect(ids).toEqual([expect.stringMatching(/^op_\d+\/a$/), expect.stringMatching(/^op_\d+\/b$/)]);
    const slow = code(() => new Promise(() => undefined), { effect: "pure", timeoutMs: 5 });
    await expect(run([step("a", { action: slow })])).rejects.toMatchObject({
      code: "TIMEOUT",
      retriable: true,
      message: 'Step "a": Its action did not answer within 5 ms.',
    });
    const deferring = code((_, { defer }) => defer());
    await expect(run([step("a", { action: deferring })])).rejects.toThrow("cannot defer");
  });

  test("TASK-2 STEP-4 a task fails if its action ignores the end of its time; a late result is not written and does not continue it", async () => {
    const ran: string[] = [];
    let finish = (_: string) => {};
    const slow = code(() => new Promise((resolve) => (finish = resolve)), { effect: "once" });
    const after = code(() => void ran.push("after"));
    const failed = run([step("slow", { action: slow }), step("after", { action: after })], {}, undefined, 20);
    await expect(failed).rejects.toMatchObject({ code: "TIMEOUT" });
    finish("late");
    await new Promise((done) => setImmediate(done));
    expect(ran).toEqual([]);
  });

  test("F10 STEP-7 an action with `retry` runs again under the same operation id while its error may pass", async () => {
    const ids = new Set<string>();
    let tries = 0;
    const failing = (retriable: boolean, until: number) =>
      code(
        (_, { operationId }) => {
          ids.add(operationId);
          tries += 1;
          if (tries <= until) throw new ToolError("Not now.", { retriable });
          return tries;
        },
        { effect: "idempotent" },
      );
    const retry = { maxAttempts: 3, backoffMs: 1 };
    expect((await run([step("a", { action: failing(true, 2), retry })])).result).toBe(3);
    expect(ids.size).toBe(1);
    tries = 0;
    await expect(run([step("a", { action: failing(true, 9), retry })])).rejects.toMatchObject({
      retriable: true,
    });
    expect(tries).toBe(3);
    tries = 0;
    await expect(run([step("a", { action: failing(false, 9), retry })])).rejects.toThrow("Not now.");
    expect(tries).toBe(1);
  });

  test("STEP-7 changes of an attempt to its input do not reach the next attempt or a later step", async () => {
    const seen: unknown[] = [];
    const greedy = code(
      (input) => {
        // SAFETY: the test gives this input.
        const order = input.order as { n: number };
        seen.push(order.n);
        order.n += 1;
        if (seen.length < 3) throw new ToolError("Not now.", { retriable: true });
        return null;
      },
      { effect: "idempotent" },
    );
    const steps = [
      step("a", { action: greedy, retry: { maxAttempts: 3, backoffMs: 0 } }),
      step("b", { action: set({ n: "input.order.n" }) }),
    ];
    expect((await run(steps, { order: { n: 1 } })).result).toEqual({ n: 1 });
    expect(seen).toEqual([1, 1, 1]);
  });

  test("TASKRUN-1 DEFAULT-1 members that are missing get their defaults, at any depth", async () => {
    const input = z.object({
      n: z.number().default(3),
      deep: z.object({ word: z.string().default("none") }),
      left: z.string().optional(),
    });
    const task = defineTask({ id: "task", input, steps: [step("a", { action: set({ all: "input" }) })] });
    const result = await runTask(task, { deep: {} });
    expect(result).toEqual({ all: { n: 3, deep: { word: "none" } } });
  });

  test("TASKRUN-1 only a result that the schema of the task accepts is used", async () => {
    const output = z.object({ n: z.number() });
    const steps = (n: string) => [
      step("a", { action: set({ n }), outputMapping: { "output.n": "result.n" } }),
    ];
    expect(await runTask(defineTask({ id: "task", input: anything, output, steps: steps("1") }), {})).toEqual(
      { n: 1 },
    );
    const wrong = runTask(defineTask({ id: "task", input: anything, output, steps: steps("'one'") }), {});
    await expect(wrong).rejects.toThrow('The output does not match the schema of the task "task"');
  });

  test("TASKLOG-1 records at most 32 events and 32 measurements, of 16 Ki characters together", async () => {
    const event = (index: number, payload = "1") =>
      step(`e${index}`, { action: { kind: "emit_event", name: "done" }, inputMapping: { n: payload } });
    const metric = (index: number) =>
      step(`m${index}`, { action: { kind: "metric.record", name: "n" }, inputMapping: { value: "1" } });
    const many = <One>(count: number, one: (index: number) => One) =>
      Array.from({ length: count }, (_, index) => one(index));
    await run([...many(32, (index) => event(index)), ...many(32, metric)].slice(0, 64));
    await expect(run(many(33, (index) => event(index)))).rejects.toThrow(
      'Step "e32": A task records at most 32',
    );
    await expect(run(many(33, metric))).rejects.toThrow('Step "m32": A task records at most 32');
    const large = { text: "x".repeat(9_000) };
    await run([event(0, "input.text")], large);
    await expect(run([event(0, "input.text"), event(1, "input.text")], large)).rejects.toThrow('Step "e1"');
  });

  test("ACTION-2 an action gets only input that its schema accepts, and its result is JSON", async () => {
    const strict = defineAction({
      id: "strict",
      input: z.object({ n: z.number() }),
      output: z.number(),
      effect: "pure",
      execute: ({ n }) => n,
    });
    const failed = run([step("a", { action: strict, inputMapping: { n: "'one'" } })]);
    await expect(failed).rejects.toMatchObject({ code: "INVALID_INPUT" });
    await expect(run([step("a", { action: says(() => 1) })])).rejects.toThrow("not JSON");
    expect((await run([step("a", { action: says(undefined) })])).result).toBeNull();
  });

  test("AREAS-1 a step writes below state and output only, and a path through a text is an error", async () => {
    const write = (outputMapping: Record<string, string>) => step("a", { action: says("x"), outputMapping });
    const through = [write({ "state.a": "result" }), { ...write({ "state.a.b": "result" }), ref: "b" }];
    await expect(run(through)).rejects.toThrow('Step "b": Type error: "a" is not an object');
    for (const path of [
      "input.a",
      "state",
      "state.",
      "output.a-b",
      "other.a",
      "state._errors",
      "state.__proto__",
    ])
      expect(() => defineTask({ id: "t", input: anything, steps: [write({ [path]: "1" })] })).toThrow(
        `/steps/0/outputMapping/${path}`,
      );
    expect(({} as JsonObject).a).toBeUndefined();
  });

  test("AREAS-2 writes of steps are bounded, and values that are too large are not written", async () => {
    const half = "x".repeat(MAX_TASK_CONTEXT_LENGTH / 2);
    const areas = new TaskAreas({});
    areas.write({ "state.a": half });
    expect(() => areas.write({ "state.b": half })).toThrow("Range error");
    expect(areas.variables.state).toEqual({ a: half });
    areas.noteError({ step: "b", code: "X", message: "y".repeat(10_000) });
    expect(areas.variables.state._errors).toEqual([{ step: "b", code: "X", message: "y".repeat(500) }]);
    const large = step("a", { action: says(half), onFailure: "continue" });
    const after = step("c", { action: set({ noted: "state._errors.size()" }) });
    const { result } = await run([large, { ...large, ref: "b" }, after]);
    expect(result).toEqual({ noted: 1 });
  });

  test("AREAS-3 an unfinished write is reverted, and costs the same for any amount of data", () => {
    const areas = new TaskAreas({});
    areas.write({ "state.kept.one": 1, "output.text": "t" });
    expect(() => areas.write({ "state.kept.two": 2, "state.new.deep": 3, "output.text.part": 4 })).toThrow(
      '"text" is not an object',
    );
    expect(areas.variables).toEqual({ input: {}, state: { kept: { one: 1 } }, output: { text: "t" } });
    const wide = Object.fromEntries(Array.from({ length: 45_000 }, (_, index) => [`m${index}`, index]));
    areas.write({ "state.body": wide });
    const { body } = areas.variables.state as { body: JsonObject };
    for (let index = 0; index < 4_000; index++) areas.write({ [`state.body.w${index}`]: index });
    // The object on the way is identical: it was not copied.
    expect(areas.variables.state.body).toBe(body);
    expect(Object.keys(body)).toHaveLength(49_000);
  });

  test("EXPR-3 the expressions of all steps share one budget", async () => {
    const many = Array.from({ length: 40 }, (_, index) =>
      step(`s${index}`, { action: set({ n: "input.list.map(i, input.list.map(j, i * j)).size()" }) }),
    );
    const list = Array.from({ length: 100 }, (_, index) => index);
    await expect(run(many, { list })).rejects.toThrow("took too many steps");
  });

  test("STEP-3 for any values, steps have the results of the same assignments", async () => {
    const names = ["a", "b", "c"] as const;
    const assignment = fc.record({
      to: fc.constantFrom(...names),
      from: fc.constantFrom(...names),
      plus: fc.integer({ min: -50, max: 50 }),
      skipped: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(assignment, { minLength: 1, maxLength: 20 }), async (assignments) => {
        const known: Record<string, number> = {};
        const steps = assignments.map(({ to, from, plus, skipped }, index) => {
          if (!skipped) known[to] = (known[from] ?? 0) + plus;
          return step(`s${index}`, {
            action: set({ value: `(has(state.${from}) ? state.${from} : 0) + (${plus})` }),
            condition: { if: String(!skipped) },
            outputMapping: { [`state.${to}`]: "result.value", [`output.${to}`]: "result.value" },
          });
        });
        const { result } = await run(steps);
        expect(result ?? {}).toEqual(known);
      }),
      { numRuns: 200 },
    );
  });
});

describe("the definition of a task of steps", () => {
  const define = (steps: unknown, more: object = {}) =>
    defineTask({ id: "bill", input: anything, steps, ...more } as Parameters<typeof defineTask>[0]);
  const ok = step("a", { action: says(1) });

  test.each([
    ["no list", "x", "/steps: Must be a list of 1 to"],
    ["no steps", [], "/steps: Must be a list of 1 to"],
    ["too many", Array.from({ length: MAX_STEPS + 1 }, () => ok), `at most ${MAX_STEPS} steps`],
    ["a name twice", [ok, ok], '/steps/1/ref: Another step is named "a"'],
    ["a bad name", [{ ...ok, ref: "a b" }], "/steps/0/ref"],
    ["a field that does not exist", [{ ...ok, when: "true" }], "/steps/0"],
    [
      "no action",
      [{ ref: "a" }],
      "/steps/0/action/kind: Must be an action of a library, made with defineAction(…)",
    ],
    [
      "an unknown kind",
      [{ ref: "a", action: { kind: "update_contxt" } }],
      "It is one of: update_context, memory.update, repo.commit, mock.return",
    ],
    [
      "an option of no kind",
      [{ ref: "a", action: { kind: "update_context", values: {}, x: 1 } }],
      "/steps/0/action",
    ],
    [
      "a broken expression",
      [step("a", { action: set({ n: "1 +" }) })],
      "/steps/0/action/values/n: Syntax error",
    ],
    [
      "an unknown variable",
      [{ ...ok, inputMapping: { n: "result" } }],
      '/steps/0/inputMapping/n: Reference error: There is no variable "result"',
    ],
    ["a broken condition", [{ ...ok, condition: { if: "state." } }], "/steps/0/condition/if: Syntax error"],
    ["an unknown outcome", [{ ...ok, condition: { if: "true", then: "stop" } }], "/steps/0/condition/then"],
    [
      "attempts of a `once` action",
      [step("a", { action: code(() => 1, { effect: "once" }), retry: { maxAttempts: 2, backoffMs: 0 } })],
      "/steps/0/retry: A `once` action has one attempt",
    ],
    [
      "a request without hosts",
      [step("a", { action: { kind: "http.request", hosts: [] } })],
      "/steps/0/action/hosts",
    ],
    [
      "a private host without its port",
      [step("a", { action: { kind: "http.request", hosts: ["localhost"] } })],
      '/steps/0/action/hosts/0: "localhost" is a private host',
    ],
    [
      "`retry` beside a `once` action",
      [{ ...ok, onFailure: "retry" }, step("pay", { action: code(() => 1, { effect: "once" }) })],
      '/steps/0/onFailure: Must not be "retry": with the `once` action of step "pay"',
    ],
    ["an unknown policy", [{ ...ok, onFailure: "ignore" }], "/steps/0/onFailure"],
  ])("STEP-1 ACTION-1 is refused with its place: %s", (_, steps, message) => {
    expect(() => define(steps)).toThrow(message);
  });

  test("ACTION-1 describes missing members in plain words", () => {
    // SAFETY: authors without types write anything.
    const action = { kind: "http.request" } as unknown as StepOptions["action"];
    expect(() => defineTask({ id: "t", input: anything, steps: [step("a", { action })] })).toThrow(
      "/steps/0/action/hosts: Is required",
    );
  });

  test("STEP-1 has neither code nor a separate effect beside its steps", () => {
    expect(() => define([ok], { execute: () => 1 })).toThrow("both `steps` and `execute`");
    expect(() => define([ok], { effect: "pure" })).toThrow("both `steps` and `effect`");
  });

  test("STEP-2 a request over HTTP without an effect is `once`", () => {
    const steps = [step("a", { action: { kind: "http.request", hosts: ["a.example"] } })];
    expect(defineTask({ id: "t", input: anything, steps }).effect).toBe("once");
  });

  test("STEP-2 has the weakest effect of its actions", async () => {
    const of = async (steps: readonly Step[]) => {
      const library = defineLibrary("lib", { tasks: [define(steps)] });
      const registry = new Registry(new DeployedCode([library]));
      return (await registry.runnable({ library: "lib", id: "bill" })).definition.effect;
    };
    const acting = (...effects: ToolEffect[]) =>
      effects.map((effect, index) => step(`s${index}`, { action: code(() => 1, { effect }) }));
    expect(await of(acting("pure"))).toBe("pure");
    expect(await of(acting("pure", "idempotent"))).toBe("idempotent");
    expect(await of(acting("idempotent", "once", "pure"))).toBe("once");
    expect(await of([step("a", { action: set({}) })])).toBe("pure");
  });
});

describe("a tool over a task, in code", () => {
  const bill = defineTask({
    id: "bill",
    input: z.object({ order: z.string() }),
    timeoutMs: 5_000,
    retry: { maxAttempts: 2, backoff: "none", initialDelayMs: 7, maxDelayMs: 9 },
    steps: [step("a", { action: set({ order: "input.order" }) })],
  });

  test("A6 TASKDEF-2 has the input, the time, the attempts and the effect of its task, which its library gets", async () => {
    const tool = defineTool({ name: "bill_it", description: "Bills.", target: { task: bill } });
    expect(tool.definition).toEqual({
      name: "bill_it",
      description: "Bills.",
      inputSchema: bill.definition.inputSchema,
      effect: "pure",
      timeoutMs: 5_000,
      retry: { maxAttempts: 2, backoffMs: 7, backoff: "none", maxDelayMs: 9 },
      target: { task: "bill" },
    });
    const library = defineLibrary("lib", { tools: [tool] });
    expect(library.tasks).toEqual([bill]);
    const pinned = await new Registry(new DeployedCode([library])).tool({ library: "lib", id: "bill_it" });
    expect(pinned.task).toMatchObject({ library: "lib", id: "bill", version: 1, steps: [{ ref: "a" }] });
    expect(pinned.definition.effect).toBe("pure");
  });

  test("A8 INMAP-1 may have its own input and a mapping, and names a task of another library by reference", () => {
    const input = z.object({ n: z.number() });
    const inputMapping = { order: "string(input.n)" };
    const { definition } = defineTool({
      name: "bill_it",
      description: "Bills.",
      target: { task: "other/bill@2" },
      input,
      inputMapping,
    });
    expect(definition).toMatchObject({ target: { task: "other/bill@2" }, inputMapping, effect: "once" });
    const base = { name: "t", description: "T.", target: { task: "other/bill" } };
    expect(() => defineTool(base)).toThrow("/input: Is required");
    expect(() => defineTool({ ...base, input, inputMapping: { order: "1 +" } })).toThrow(
      "/inputMapping/order",
    );
    // SAFETY: authors without types write anything.
    const wrong = { ...base, target: { task: 7 } } as unknown as Parameters<typeof defineTool>[0];
    expect(() => defineTool(wrong)).toThrow("/target/task");
  });

  test("REG-6 STEP-2 a tool that promises more than its task is pinned with the effect of the task", async () => {
    const risky = defineTask({
      id: "risky",
      input: anything,
      steps: [step("pay", { action: code(() => 1, { effect: "once" }) })],
    });
    const tool = defineTool({ name: "pay", description: "Pays.", target: { task: risky }, effect: "pure" });
    const registry = new Registry(new DeployedCode([defineLibrary("lib", { tools: [tool] })]));
    expect((await registry.tool({ library: "lib", id: "pay" })).definition.effect).toBe("once");
  });
});

describe("APPROVE-9 a task under a deployed tool that needs an approval", () => {
  const pay = (id: string, steps: boolean) =>
    steps
      ? defineTask({ id, input: anything, steps: [step("a", { action: says(1) })] })
      : defineTask({ id, input: anything, effect: "pure", execute: () => 1 });
  const tool = (name: string, task: Task, approval: "always" | "never") =>
    defineTool({ name, description: "Pays.", target: { task }, approval });
  const ports = (registry: Registry) => ({ registry, mayReceiveKey: () => true, mayReach: () => true });

  test.each([true, false])(
    "of steps: %s: is not reached without an approval by an author or by a hook",
    async (steps) => {
      const task = pay("pay", steps);
      const free = tool("free", pay("look", steps), "never");
      const bank = defineLibrary("bank", {
        tools: [tool("transfer", task, "always"), tool("quick", task, "never"), free],
      });
      const registry = new Registry(new DeployedCode([bank]));
      const posted = (id: string, approval?: "always" | "never") =>
        checkedTool(
          ports(registry),
          { library: "mine", id: "t" },
          { name: "t", description: "T.", target: { task: `bank/${id}` }, ...defined({ approval }) },
        );
      await expect(posted("pay", "never")).rejects.toThrow("needs an approval of each call");
      expect(await posted("pay")).toMatchObject({ approval: "always" });
      expect(await posted("look", "never")).toMatchObject({ approval: "never" });
      await expect(
        findHook(registry, { name: "contextAssembly", target: { task: "bank/pay" }, home: "mine" }),
      ).rejects.toThrow("needs a person's approval");
      expect((await registry.tool({ library: "bank", id: "quick" })).definition.approval).toBe("never");
      expect((await registry.tool({ library: "bank", id: "transfer" })).definition.approval).toBe("always");
    },
  );
});

test("PIN-2 a bare id refers to its own library, in a task and in an action of another library", async () => {
  const words = (text: string) => definePrompt("words", { template: text });
  const ask = defineAction({ id: "ask", kind: "llm", prompt: words("Of theirs.") });
  const theirs = defineLibrary("theirs", { actions: [ask] });
  const task = defineTask({
    id: "both",
    input: anything,
    steps: [
      step("own", { action: { kind: "llm", prompt: words("Of ours.") } }),
      step("other", { action: "theirs/ask" }),
    ],
  });
  const ours = defineLibrary("ours", { tasks: [task] });
  const registry = new Registry(new DeployedCode([ours, theirs]));
  const { task: pinned } = await registry.runnable({ library: "ours", id: "both" });
  expect(
    pinned?.steps.map(({ action }) => (action.kind === "llm" ? action.prompt?.template : undefined)),
  ).toEqual(["Of ours.", "Of theirs."]);
});

test("PIN-1 a step without a model gets the agent's model, and a step with a model keeps it", async () => {
  const own = defineModelProfile("own", { provider: "openai", modelId: "own" });
  const task = defineTask({
    id: "both",
    input: anything,
    steps: [
      step("agents", { action: { kind: "llm", template: "Hi." } }),
      step("own", { action: { kind: "llm", template: "Hi.", profile: own } }),
      step("words", { action: { kind: "llm.embed" } }),
    ],
  });
  const registry = new Registry(new DeployedCode([defineLibrary("lib", { tasks: [task] })]));
  const { task: pinned } = await registry.runnable({ library: "lib", id: "both" });
  if (pinned === undefined) throw new Error("It has steps.");
  const agents = { provider: "openai", modelId: "of-the-agent" } as const;
  const { steps } = withModels(pinned, agents, (profile) => ({ ...profile, parameters: { seed: 1 } }));
  expect(steps.map(({ action }) => ("profile" in action ? action.profile : undefined))).toEqual([
    { ...agents, parameters: { seed: 1 } },
    { provider: "openai", modelId: "own", parameters: { seed: 1 } },
    undefined,
  ]);
});

test("FLOWBUILD-2 STEP-1 a task, an action or a workflow in the wrong place is named", () => {
  const task = defineTask({ id: "t", input: anything, effect: "pure", execute: () => 1 });
  const flow = defineWorkflow("w", { input: anything, initialNode: "a", nodes: [node("a")] });
  // SAFETY: authors without types write anything.
  const wrong = <Value>(value: unknown) => value as Value;
  const steps = (action: unknown) => () =>
    defineTask({ id: "s", input: anything, steps: [step("x", { action: wrong<Step["action"]>(action) })] });
  const nodes = (options: object) => () =>
    defineWorkflow("f", { input: anything, initialNode: "n", nodes: [node("n", wrong(options))] });
  expect(steps(task)).toThrow('Step "x" has a task as its `action`.');
  expect(steps(flow)).toThrow('Step "x" has a workflow as its `action`.');
  expect(nodes({ task: flow })).toThrow('Node "n" has a workflow as its `task`. Write `workflow`.');
  expect(nodes({ workflow: task })).toThrow('Node "n" has a task as its `workflow`. Write `task`.');
  expect(nodes({ task: says(1) })).toThrow('Node "n" has an action as its `task`.');
  expect(() => defineLibrary("l", { tasks: [wrong(flow)] })).toThrow("/tasks/0: Make it with defineTask(…).");
});

test("F10 STEP-4 HOOK-2 a hook of steps: a failure with `retry` runs it again from its first step, with a fresh state", async () => {
  const seen: JsonObject[] = [];
  let tries = 0;
  const request = defineTask({
    id: "request",
    input: z.looseObject({ user_message: z.string() }),
    steps: [
      step("note", {
        action: set({ text: "input.user_message", earlier: "state" }),
        outputMapping: { "state.note": "result" },
      }),
      step("fetch", {
        action: code(
          (input) => {
            seen.push(input);
            tries += 1;
            if (tries === 1) throw new ToolError("The store is away.");
            return "facts";
          },
          { effect: "idempotent" },
        ),
        inputMapping: { note: "state.note" },
        outputMapping: { "state.facts": "result" },
        onFailure: "retry",
      }),
      step("write", {
        action: set({ role: "'user'", content: "state.note.text + ': ' + state.facts" }),
        outputMapping: {
          "output.model": "'chosen'",
          "output.stream": "true",
          "output.messages": "[result]",
        },
      }),
    ],
  });
  const room = await SteeredConversation.create(
    defineLibrary("lib", { tasks: [request] }),
    {},
    { contextAssembly: { task: "lib/request" } },
  );
  await room.say("Hello");
  const asked = await room.request();
  expect(asked.body).toEqual({
    model: "chosen",
    stream: true,
    messages: [{ role: "user", content: "Hello: facts" }],
  });
  expect(seen).toEqual([{ note: { text: "Hello", earlier: {} } }, { note: { text: "Hello", earlier: {} } }]);
  asked.answer("Hi.");
  await room.until(({ type }) => type === "turn.completed");
});

test("BATCH-2 F13 the tasks of one reply begin one after another, with other work between them", async () => {
  const order: string[] = [];
  const task = defineTask({
    id: "task",
    input: anything,
    steps: [
      step("note", {
        action: code(({ name }) => {
          order.push(String(name));
          setImmediate(() => order.push("another"));
          return null;
        }),
      }),
    ],
  });
  const tools = new DeployedCode([defineLibrary("lib", { tasks: [task] })]);
  const { task: pinned } = await new Registry(tools).runnable({ library: "lib", id: "task" });
  const calls = ["one", "two", "three"].map((name) => ({
    ...callOf("task", { name }),
    ...(pinned && { task: pinned }),
  }));
  const results: ExecutorReport[] = [];
  await localExecutor(tools, systemClock).run(calls, {
    report: async (reports) => {
      results.push(...reports);
      return [];
    },
    cancelled: () => new Promise<never>(() => undefined),
  });
  expect(order.slice(0, 4)).toEqual(["one", "another", "two", "another"]);
  expect(results.filter((report) => "result" in report)).toHaveLength(3);
});

describe("HOSTS-3 the deployer's list of hosts", () => {
  const requests = async (changes: Partial<PinnedTask>, mayReach: (host: string) => boolean) => {
    await using server = await startOpenAIServer({ script: () => jsonReply({ price: 7 }) });
    const { origin, host } = new URL(server.baseUrl);
    const task = defineTask({
      id: "task",
      input: anything,
      steps: [step("get", { action: { kind: "http.request", hosts: [host], effect: "pure" } })],
    });
    const outcome = await runTask(
      task,
      { url: `${origin}/v1/chat/completions`, method: "POST", body: {} },
      { changes, mayReach },
    ).catch((error: unknown) => error);
    return { outcome, asked: server.requests.length };
  };

  test("is checked at each request of a posted task, so a removed host is not reached", async () => {
    const listed = await requests({ authored: true }, () => true);
    expect(listed.outcome).toMatchObject({ status: 200 });
    const struckOff = await requests({ authored: true }, () => false);
    expect(struckOff.outcome).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(struckOff.asked).toBe(0);
  });

  test("applies only to posted tasks, which their pins distinguish", async () => {
    expect((await requests({}, () => false)).outcome).toMatchObject({ status: 200 });
    const task = defineTask({ id: "task", input: anything, steps: [step("a", { action: set({}) })] });
    const code = new DeployedCode([defineLibrary("lib", { tasks: [task] })]);
    const source = { library: "lib", id: "task", version: 1, hash: "h", definition: task.definition };
    expect((await new Registry(code).pinned(source)).task.authored).toBeUndefined();
    expect((await new Registry(code).pinned({ ...source, library: "posted" })).task.authored).toBe(true);
  });
});
