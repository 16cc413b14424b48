import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../src/library/define/define-workflow.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { pinWorkflow } from "../../src/library/registry/pin.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { MAX_LEVELS, MAX_PINNED_WORKFLOW_BYTES } from "../../src/library/workflows/workflow-limits.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { utf8Length } from "../../src/shared/utf8.ts";
import { library, taskOf, workflow } from "../support/authored-library.ts";

const defaultProfile: ModelProfile = { provider: "offline", modelId: "default" };
const pin = (registry: Registry, reference: string) => pinWorkflow(registry, reference, { defaultProfile });

const asking = { kind: "llm", prompt: "hello", profile: "m" } as const;
const profile = (modelId: string): ModelProfile => ({ provider: "offline", modelId });

/** A workflow `own/top` over a task of steps, an action, a prompt, a model and a sub-workflow. */
async function layered() {
  const own = library();
  await own.add("model-profile", "m", profile("one"));
  await own.add("prompt", "hello", { template: "Hello one" });
  await own.add("action", "ask", asking);
  await own.add("task", "work", taskOf("ask"));
  await own.add("workflow", "inner", workflow([{ task: "work" }]));
  await own.add(
    "workflow",
    "top",
    workflow([{ task: "work" }, { workflow: "inner" }, { agent: "clerk" }, {}]),
  );
  return own;
}

describe("a pinned workflow", () => {
  test("FLOWPIN-1 has the definitions of its nodes, by their refs, and is data", async () => {
    const own = await layered();
    const pinned = await pin(own.registry(), "own/top");
    expect(structuredClone(pinned)).toEqual(pinned);
    expect(JSON.parse(JSON.stringify(pinned))).toEqual(pinned);
    expect(pinned).toMatchObject({ library: "own", id: "top", version: 1 });
    expect(pinned.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(Object.keys(pinned.tasks)).toEqual(["n0"]);
    expect(Object.keys(pinned.workflows)).toEqual(["n1"]);
    const action = { kind: "llm", prompt: { template: "Hello one" }, profile: profile("one") };
    expect(pinned.tasks.n0).toMatchObject({
      ...{ library: "own", id: "work", effect: "idempotent", timeoutMs: 1_000 },
      task: { authored: true, steps: [{ action }] },
    });
    expect(pinned.workflows.n1).toMatchObject({ id: "inner", version: 1, workflows: {} });
    expect(pinned.workflows.n1?.tasks.n0).toBe(pinned.tasks.n0);
  });

  test("FLOWPIN-1 FLOWPIN-2 keeps its versions, and the next pin has the newest versions", async () => {
    const own = await layered();
    const before = await pin(own.registry(), "own/top");
    const copy = structuredClone(before);
    await own.add("model-profile", "m", profile("two"));
    await own.add("prompt", "hello", { template: "Hello two" });
    await own.add("action", "ask", { ...asking, systemPrompt: "Be kind." });
    await own.add("task", "work", taskOf("ask", { timeoutMs: 2_000 }));
    await own.add("workflow", "inner", workflow([{ task: "work" }, {}]));
    expect(before).toEqual(copy);
    const after = await pin(own.registry(), "own/top");
    expect(after).toMatchObject({
      version: 1,
      tasks: {
        n0: {
          timeoutMs: 2_000,
          task: {
            version: 2,
            steps: [
              {
                action: {
                  systemPrompt: "Be kind.",
                  prompt: { template: "Hello two" },
                  profile: profile("two"),
                },
              },
            ],
          },
        },
      },
      workflows: { n1: { version: 2 } },
    });
    await own.add("workflow", "top", workflow([{ workflow: "inner@1" }, { task: "work@1" }]));
    const named = await pin(own.registry(), "own/top");
    expect(named).toMatchObject({
      version: 2,
      workflows: { n0: { version: 1, hash: copy.workflows.n1?.hash } },
      tasks: { n1: { timeoutMs: 1_000, task: { version: 1 } } },
    });
    expect(await pin(own.registry(), "own/top@1")).toEqual(after);
  });

  test("FLOWPIN-1 has the models of its `llm` steps, completed", async () => {
    const own = library();
    await own.add("model-profile", "m", profile("one"));
    await own.add("task", "named", taskOf({ kind: "llm", template: "Hello", profile: "m" }));
    await own.add("task", "unnamed", taskOf({ kind: "llm", template: "Hello" }));
    await own.add("workflow", "top", workflow([{ task: "named" }, { task: "unnamed" }]));
    const complete = (given: ModelProfile) => ({ ...given, baseUrl: "https://models.example" });
    const pinned = await pinWorkflow(own.registry(), "own/top", { defaultProfile, complete });
    const model = (ref: string) => pinned.tasks[ref]?.task?.steps[0]?.action;
    expect(model("n0")).toMatchObject({ profile: complete(profile("one")) });
    expect(model("n1")).toMatchObject({ profile: complete(defaultProfile) });
  });

  test("FLOWPIN-1 names functions, and has their effect, time and attempts", async () => {
    const add = defineTask({
      id: "add",
      input: z.object({}),
      effect: "pure",
      timeoutMs: 5_000,
      execute: () => 1,
    });
    const tool = defineTool({
      name: "look",
      description: "Looks.",
      input: z.object({}),
      effect: "idempotent",
      retry: { maxAttempts: 3, backoffMs: 10 },
      execute: () => 1,
    });
    const flow = defineWorkflow("flow", {
      input: z.object({}),
      initialNode: "toString",
      nodes: [node("toString", { task: add }), node("__proto__", { task: "look" })],
      transitions: [transition({ from: "toString", to: "__proto__" })],
    });
    const registry = new Registry(
      new DeployedCode([defineLibrary("lib", { tools: [tool], workflows: [flow] })]),
    );
    const { tasks } = await pin(registry, "lib/flow");
    expect(Object.entries(tasks)).toEqual([
      ["toString", { library: "lib", id: "add", effect: "pure", timeoutMs: 5_000 }],
      [
        "__proto__",
        {
          ...{ library: "lib", id: "look", effect: "idempotent", timeoutMs: 60_000 },
          retry: { maxAttempts: 3, backoffMs: 10 },
        },
      ],
    ]);
  });

  test("FLOWPIN-2 a bare id means a definition of the library that names it", async () => {
    const flow = (id: string, task: string) =>
      defineWorkflow(id, { input: z.object({}), initialNode: "n", nodes: [node("n", { task })] });
    const work = (timeoutMs: number) =>
      defineTask({ id: "work", input: z.object({}), timeoutMs, execute: () => 1 });
    const lib = defineLibrary("lib", { tasks: [work(1)], workflows: [flow("inner", "work")] });
    const own = library([lib]);
    await own.add("task", "work", taskOf({ kind: "llm", template: "Hello" }));
    await own.add("workflow", "top", workflow([{ workflow: "lib/inner" }, { task: "work" }]));
    const pinned = await pin(own.registry(), "own/top");
    expect(pinned.workflows.n0?.tasks.n).toMatchObject({ library: "lib", timeoutMs: 1 });
    expect(pinned.tasks.n1).toMatchObject({ library: "own", timeoutMs: 1_000 });
  });

  test("is one object for all nodes that name it, however they do", async () => {
    const own = await layered();
    await own.add(
      "workflow",
      "all",
      workflow([{ workflow: "inner" }, { workflow: "own/inner@1" }, { workflow: "top" }]),
    );
    const { workflows } = await pin(own.registry(), "own/all");
    expect(workflows.n1).toBe(workflows.n0);
    expect(workflows.n2?.workflows.n1).toBe(workflows.n0);
  });
});

describe("a workflow is not pinned", () => {
  test.each([
    ["own/none", "NOT_FOUND", /^Library "own" has no workflow "none"/],
    ["own/top@7", "NOT_FOUND", /^There is no workflow "own\/top@7"/],
    ["top", "INVALID_INPUT", /names no library/],
    ["own/task", "NOT_FOUND", /^Workflow "own\/task", \/nodes\/1\/task: .*no task "missing"/],
    ["own/flow", "NOT_FOUND", /^Workflow "own\/flow", \/nodes\/0\/workflow: .*no workflow "missing"/],
    ["own/deep", "NOT_FOUND", /^Workflow "own\/task", \/nodes\/1\/task: .*no task "missing"/],
    [
      "own/part",
      "INVALID_INPUT",
      /^Workflow "own\/part", \/nodes\/0\/task: .*\/steps\/0\/action: .*no action "gone"/,
    ],
  ])("FLOWPIN-3 if a definition is missing: %s", async (reference, code, message) => {
    const own = await layered();
    await own.add("task", "broken", taskOf("gone"));
    await own.add("workflow", "task", workflow([{}, { task: "missing" }]));
    await own.add("workflow", "flow", workflow([{ workflow: "missing" }]));
    await own.add("workflow", "deep", workflow([{ task: "work" }, { workflow: "task" }]));
    await own.add("workflow", "part", workflow([{ task: "broken" }]));
    await expect(pin(own.registry(), reference)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  test("FLOWPIN-4 if a task needs an approval of each call", async () => {
    const work = defineTask({ id: "work", input: z.object({}), execute: () => 1 });
    const common = { description: "Works.", approval: "always" } as const;
    const over = defineTool({ ...common, name: "over", target: { task: work } });
    const alone = defineTool({ ...common, name: "alone", input: z.object({}), execute: () => 1 });
    const own = library([defineLibrary("lib", { tools: [over, alone] })]);
    await own.add("workflow", "inner", workflow([{}, { task: "lib/work" }]));
    await own.add("workflow", "top", workflow([{ workflow: "inner" }]));
    await own.add("workflow", "other", workflow([{ task: "lib/alone" }]));
    await expect(pin(own.registry(), "own/top")).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(
        /^Workflow "own\/inner", \/nodes\/1\/task: "lib\/work" needs a person's approval of each call/,
      ),
    });
    await expect(pin(own.registry(), "own/other")).rejects.toThrow('"lib/alone" needs a person\'s approval');
  });

  test("FLOWPIN-5 if it is too large, each part counted for each node, without writing it as JSON", async () => {
    const own = library();
    const template = "x".repeat(10_000);
    await own.add("task", "long", taskOf({ kind: "llm", template }));
    const times = (count: number, owner: object) => workflow(Array(count).fill(owner));
    await own.add("workflow", "w0", times(100, { task: "long" }));
    await own.add("workflow", "few", times(1, { workflow: "w0" }));
    await own.add("workflow", "twice", times(2, { workflow: "w0" }));
    for (let level = 1; level < MAX_LEVELS; level++)
      await own.add("workflow", `w${level}`, times(level === 1 ? 1 : 400, { workflow: `w${level - 1}` }));
    expect(await pin(own.registry(), "own/few")).toMatchObject({ workflows: { n0: { id: "w0" } } });
    await expect(pin(own.registry(), "own/twice")).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(
        /^Workflow "own\/twice": Has 20\d{5} bytes or more .* The maximum is 1048576\. Let fewer nodes/,
      ),
    });
    await expect(pin(own.registry(), `own/w${MAX_LEVELS - 1}`)).rejects.toThrow('Workflow "own/w2": Has ');
  });

  test("FLOWPIN-5 if its tasks are too large together, and the rest is not read", async () => {
    const own = library();
    const template = "x".repeat(MAX_PINNED_WORKFLOW_BYTES / 8);
    for (let n = 0; n < 100; n++)
      await own.add("task", `t${n}`, taskOf({ kind: "llm", template: `${n}${template}` }));
    const nodes = Array.from({ length: 100 }, (_, n) => ({ task: `t${n}` }));
    await own.add("workflow", "top", workflow(nodes));
    const refused = () => expect(pin(own.registry(), "own/top")).rejects.toThrow('Workflow "own/top": Has ');
    expect(await own.finds(refused)).toBeLessThan(10);
  });
});

describe("the size of a pinned workflow", () => {
  test("FLOWPIN-5 is the size of its JSON", async () => {
    const own = library();
    const sized = async (length: number) => {
      await own.add("task", "work", taskOf({ kind: "llm", template: "é".repeat(5_000) }));
      await own.add("task", "rest", taskOf({ kind: "llm", template: "x".repeat(length) }));
      await own.add("workflow", "inner", workflow(Array(40).fill({ task: "work" })));
      await own.add("workflow", "top", workflow([...Array(2).fill({ workflow: "inner" }), { task: "rest" }]));
      return pin(own.registry(), "own/top");
    };
    const size = utf8Length(JSON.stringify(await sized(1)));
    const rest = MAX_PINNED_WORKFLOW_BYTES - size + 1;
    expect(utf8Length(JSON.stringify(await sized(rest)))).toBe(MAX_PINNED_WORKFLOW_BYTES);
    await expect(sized(rest + 1)).rejects.toThrow(`Has ${MAX_PINNED_WORKFLOW_BYTES + 1} bytes`);
  });
});
