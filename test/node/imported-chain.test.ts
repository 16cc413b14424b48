/** The agent versions in an imported conversation: refusals name the place, and accepted versions stay unchanged. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { library as team } from "../../src/library/agents/team.ts";
import { type ImportPorts, importedChain } from "../../src/library/authoring/imported-chain.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../src/library/define/define.ts";
import { defineSubAgent } from "../../src/library/define/define-sub-agent.ts";
import { defineAction, definePrompt, defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../src/library/define/define-workflow.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { defineSkill } from "../../src/library/skills/skill.ts";
import { library as strategies } from "../../src/library/strategies/strategies.ts";
import { step } from "../../src/library/tasks/step.ts";
import type { VersionChain } from "../../src/protocol/definitions.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Json } from "../../src/shared/json.ts";
import { anything, placesIn, withValue } from "../support/changed-json.ts";
import { decodeRecording, loadStorage } from "../support/releases/format.ts";
import { Stage } from "../support/releases/stage.ts";

const OFFLINE = { provider: "offline", modelId: "offline-1" } as const;

const mark = defineAction({
  id: "mark",
  input: z.looseObject({}),
  effect: "idempotent",
  execute: () => null,
});
const words = definePrompt("words", { systemPrompt: "Be short.", template: "Say {{ type }}." });
const fast = defineModelProfile("fast", { provider: "openai", modelId: "m", fallbacks: ["lib/slow"] });
const slow = defineModelProfile("slow", { provider: "anthropic", modelId: "n", contextTokens: 9_000 });
const gather = defineTask({
  id: "gather",
  input: z.object({ type: z.string() }),
  output: z.looseObject({}),
  steps: [
    step("get", {
      action: { kind: "http.request", hosts: ["api.example"], effect: "pure", timeoutMs: 5_000 },
      inputMapping: { url: "'https://api.example/' + input.type" },
      condition: { if: "input.type != ''", else: "succeed" },
      retry: { maxAttempts: 2, backoffMs: 10 },
    }),
    step("say", {
      action: {
        kind: "llm",
        prompt: words,
        profile: slow,
        outputSchema: { type: "object" },
        maxOutputTokens: 50,
      },
      inputMapping: { type: "input.type" },
      onFailure: "continue",
    }),
    step("vectors", { action: { kind: "llm.embed", profile: fast } }),
    step("mark", { action: mark, idempotencyKey: "input.type" }),
    step("note", {
      action: { kind: "update_context", values: { done: "true" } },
      outputMapping: { "output.done": "result.done" },
    }),
  ],
});
const ask = defineTask({
  id: "ask",
  input: z.looseObject({ user_message: z.string() }),
  effect: "pure",
  execute: ({ user_message }) => ({ messages: [{ role: "user", content: user_message }] }),
});
const inner = defineWorkflow("inner", {
  input: z.object({ type: z.string() }),
  context: z.object({ made: z.unknown() }),
  initialNode: "a",
  nodes: [
    node("a", {
      task: gather,
      inputMapping: { type: "input.type" },
      outputMapping: { "state.made": "result" },
    }),
  ],
  outputMapping: { made: "state.made" },
});
const learn = defineWorkflow("learn", {
  input: z.looseObject({ user_text: z.string() }),
  context: z.object({ facts: z.unknown() }),
  initialNode: "first",
  nodes: [
    node("first", {
      workflow: inner,
      inputMapping: { type: "input.user_text" },
      outputMapping: { "state.facts": "result" },
    }),
    node("second", { task: ask, inputMapping: { user_message: "input.user_text" } }),
  ],
  transitions: [transition({ from: "first", to: "second" })],
  outputMapping: { operations: "[]" },
});
const skillNamed = (name: string) =>
  defineSkill({ files: { "SKILL.md": `---\nname: ${name}\ndescription: Helps.\n---\nHelp.\n` } });
const library = defineLibrary("lib", {
  skills: [skillNamed("greet")],
  tasks: [gather, ask],
  actions: [mark],
  prompts: [words],
  workflows: [inner, learn],
  modelProfiles: [fast, slow],
  tools: [
    defineTool({ name: "gather", id: "use_gather", description: "Gathers.", target: { task: gather } }),
    defineTool({
      name: "look",
      description: "Looks.",
      input: z.object({ at: z.string().regex(/^[a-z]+$/) }),
      effect: "pure",
      retry: { maxAttempts: 3 },
      hosts: ["api.example"],
      approval: "always",
      execute: () => null,
    }),
    defineTool({ name: "learn", id: "use_learn", description: "Learns.", target: { workflow: learn } }),
    defineTool({
      name: "colleague",
      description: "Answers.",
      target: { agent: "other", mode: "loop_in", handoff: "recent" },
    }),
    defineSubAgent("helper", {
      description: "Helps.",
      agent: "other",
      tools: ["look"],
      network: ["api.example"],
    }),
  ],
  personas: [
    definePersona("plain", { identity: { systemPrompt: "You help." } }),
    definePersona("full", {
      name: "Full",
      identity: { systemPrompt: "You help.", instructions: ["Be kind."], modelProfileId: "fast" },
      tools: {
        toolIds: ["use_gather", "look", "use_learn", "colleague", "agent_spawn_helper"],
        constraints: { maxMovesPerTurn: 4 },
      },
      memory: {
        scope: "user",
        recall: { tokens: 500 },
        compactionProfileId: "slow",
        contextAssembly: { task: "ask" },
        memoryExtraction: { workflow: learn },
        retention: { episode: { days: 30, then: "archive" } },
        consolidation: { types: ["episode"], by: { task: "gather" } },
        ranking: { semantic: 2 },
        timeZone: "Asia/Tokyo",
      },
      budget: { tokens: 1_000_000 },
      examples: ["Hello?"],
      skills: [skillNamed("own"), "greet"],
    }),
    definePersona("learner", {
      identity: { systemPrompt: "You learn.", modelProfileId: "slow" },
      memory: { scope: "agent", extract: true },
      tools: { toolIds: strategies.tools.map(({ id }) => `strategies/${id}`) },
    }),
  ],
});

const code = new DeployedCode([library, strategies, team]);
const registry = new Registry(code);
const ports: ImportPorts = {
  code,
  registry,
  mayReceiveKey: () => true,
  mayReach: (host) => host === "api.example",
};
const PERSONAS = ["lib/plain", "lib/full", "lib/learner", ...team.personas.map(({ id }) => `team/${id}`)];

/** Returns a chain as a file has it. */
async function chainOf(persona: string): Promise<VersionChain & Json> {
  return JSON.parse(JSON.stringify(await resolveChain(registry, persona, OFFLINE)));
}

const PATH = "/agents/0/chain";

test.each(PERSONAS)("BACKUP-14 the versions of %s stay unchanged", async (persona) => {
  const chain = await chainOf(persona);
  expect(JSON.parse(JSON.stringify(await importedChain(ports, chain, PATH)))).toEqual(chain);
});

test("BACKUP-7 a tool of an MCP server has the name that policies know", async () => {
  const chain: VersionChain = await chainOf("lib/plain");
  const named = (name: string) => {
    const definition = {
      name,
      description: "Reads.",
      inputSchema: { type: "object" },
      effect: "once",
      timeoutMs: 1_000,
    };
    return {
      ...chain,
      tools: [{ library: "mcp:desk", id: "read", version: 1, hash: "0".repeat(64), definition }],
    };
  };
  const imported = await importedChain(ports, named("mcp__desk__read"), PATH);
  expect(imported.tools).toMatchObject([{ id: "read" }]);
  await expect(importedChain(ports, named("harmless"), PATH)).rejects.toMatchObject({
    code: "INVALID_INPUT",
    message: expect.stringContaining("mcp__desk__read"),
  });
});

/** The versions that every release has stored, by the file of its recording. */
function releasedChains(): [file: string, chain: Json][] {
  const cwd = join(import.meta.dirname, "../fixtures/releases");
  return globSync("*/*.jsonl", { cwd }).flatMap((path): [string, Json][] => {
    const { of, now, storage } = decodeRecording(readFileSync(join(cwd, path), "utf8"));
    if (of !== "conversation") return [];
    const stage = new Stage(now, 11);
    loadStorage(storage, stage.database, stage.keyValue);
    const { agents } = stage.begin().runtime.state.record;
    return agents.map(({ chain }) => [path, JSON.parse(JSON.stringify(chain))]);
  });
}

test.each(releasedChains())(
  "BACKUP-14 the versions that were stored in %s are imported",
  async (_, chain) => {
    const released: ImportPorts = {
      ...ports,
      registry: new Registry(new DeployedCode([])),
      code: new DeployedCode([]),
    };
    const imported = JSON.parse(JSON.stringify(await importedChain(released, chain, PATH)));
    expect(JSON.parse(JSON.stringify(await importedChain(released, imported, PATH)))).toEqual(imported);
  },
);

describe("BACKUP-14 versions that no author could have posted are refused with their place:", () => {
  type Loose = ReturnType<typeof JSON.parse>;
  const toolIn = ({ tools }: Loose, name: string) =>
    tools.find(({ definition }: Loose) => definition.name === name);
  const cases: [what: string, change: (chain: Loose) => unknown, at: string][] = [
    [
      "a persona without a prompt",
      ({ persona }) => (persona.definition = {}),
      "/persona/definition/identity",
    ],
    [
      "a persona that is empty",
      ({ persona }) => (persona.definition.identity = {}),
      "/persona/definition/identity/systemPrompt",
    ],
    ["a reference to a skill that the file lacks", (chain) => delete chain.skills, "/skills"],
    [
      "a skill without its SKILL.md",
      ({ skills }) => (skills[0].definition.files = {}),
      "/skills/0/definition/files/SKILL.md",
    ],
    [
      "two skills with one name",
      ({ skills, persona }) => (skills[0].definition = persona.definition.skills[0]),
      "/persona/definition/skills/1",
    ],
    [
      "a zone that is none",
      ({ persona }) => (persona.definition.memory.timeZone = "Moon"),
      "/persona/definition/memory/timeZone",
    ],
    [
      "turns below 1",
      ({ persona }) => (persona.definition.memory.recentTurnsLimit = -1),
      "/persona/definition/memory/recentTurnsLimit",
    ],
    [
      "a target of no kind",
      ({ tools }) => (tools[0].definition.target = { shell: "rm" }),
      "/tools/0/definition/target",
    ],
    [
      "a target that is a text",
      ({ tools }) => (tools[0].definition.target = "x"),
      "/tools/0/definition/target",
    ],
    ["no time", ({ tools }) => (tools[0].definition.timeoutMs = 0), "/tools/0/definition/timeoutMs"],
    [
      "a time that never ends",
      ({ tools }) => (tools[1].definition.timeoutMs = 1e9),
      "/tools/1/definition/timeoutMs",
    ],
    [
      "attempts without end",
      ({ tools }) => (tools[1].definition.retry.maxAttempts = 1e9),
      "/tools/1/definition/retry/maxAttempts",
    ],
    [
      "a schema that does not compile",
      ({ tools }) => (tools[1].definition.inputSchema.properties.at.pattern = "("),
      "/tools/1/definition/inputSchema/properties/at/pattern",
    ],
    [
      "an expression that does not compile",
      ({ tools }) => (tools[1].definition.inputMapping = { at: "(" }),
      "/tools/1/definition/inputMapping/at",
    ],
    ["two tools of one name", (chain) => chain.tools.push(chain.tools[0]), ""],
    [
      "too many tools",
      (chain) => (chain.tools = Array.from({ length: 1_001 }, () => chain.tools[0])),
      "/tools",
    ],
    [
      "an action of an unknown kind",
      (chain) => (toolIn(chain, "gather").task.steps[0].action = { kind: "shell" }),
      "/tools/0/task/steps/0/action/kind",
    ],
    [
      "an option that the kind does not have",
      (chain) => (toolIn(chain, "gather").task.steps[0].action.profile = OFFLINE),
      "/tools/0/task/steps/0/action/profile",
    ],
    [
      "a template that does not compile",
      (chain) => (toolIn(chain, "gather").task.steps[1].action.prompt.template = "{{"),
      "/tools/0/task/steps/1/action/prompt/template",
    ],
    [
      "a condition that does not compile",
      (chain) => (toolIn(chain, "gather").task.steps[0].condition.if = "("),
      "/tools/0/task/steps/0/condition/if",
    ],
    [
      "code without a time",
      (chain) => delete toolIn(chain, "gather").task.steps[3].action.timeoutMs,
      "/tools/0/task/steps/3/action/timeoutMs",
    ],
    ["a task without steps", (chain) => (toolIn(chain, "gather").task.steps = []), "/tools/0/task/steps"],
    [
      "a task whose schema does not compile",
      (chain) => (toolIn(chain, "gather").task.inputSchema.properties.type.pattern = "("),
      "/tools/0/task/inputSchema/properties/type/pattern",
    ],
    [
      "a hook with a task and a workflow",
      (chain) => (chain.memoryExtraction.task = toolIn(chain, "gather").task),
      "/memoryExtraction/workflow",
    ],
    [
      "a workflow without a node",
      ({ memoryExtraction }) => (memoryExtraction.workflow.definition.nodes = []),
      "/memoryExtraction/workflow/definition/nodes",
    ],
    [
      "a workflow that begins nowhere",
      ({ memoryExtraction }) => (memoryExtraction.workflow.definition.initialNode = "x"),
      "/memoryExtraction/workflow/definition/initialNode",
    ],
    [
      "a workflow without the task of a node",
      ({ memoryExtraction }) => (memoryExtraction.workflow.tasks = {}),
      "/memoryExtraction/workflow/tasks",
    ],
    [
      "a task of a node of a workflow below",
      ({ memoryExtraction }) => (memoryExtraction.workflow.workflows.first.tasks.a.task.steps[0].ref = ""),
      "/memoryExtraction/workflow/workflows/first/tasks/a/task/steps/0/ref",
    ],
    [
      "workflows that nest eleven levels deep",
      ({ memoryExtraction }) => {
        const { workflow } = memoryExtraction;
        for (let level = 2; level < 11; level += 1)
          memoryExtraction.workflow = { ...workflow, workflows: { first: memoryExtraction.workflow } };
      },
      `/memoryExtraction/workflow${"/workflows/first".repeat(9)}/workflows`,
    ],
    [
      "a workflow that cannot be the hook",
      ({ memoryExtraction }) => (memoryExtraction.workflow.definition.outputMapping = { made: "1" }),
      "/memoryExtraction/workflow",
    ],
    ["a member that nothing has", (chain) => (chain.secrets = {}), "/secrets"],
    [
      "a fallback too many",
      (chain) => (chain.fallbacks = Array.from({ length: 6 }, () => chain.fallbacks[0])),
      "/fallbacks",
    ],
    [
      "a price below 0",
      ({ modelProfile }) => (modelProfile.definition.costPer1kInput = -1),
      "/modelProfile/definition/costPer1kInput",
    ],
    ["a version below 0", ({ persona }) => (persona.version = -1), "/persona/version"],
  ];

  test.each(cases)("%s", async (_, change, at) => {
    const chain = await chainOf("lib/full");
    change(chain);
    const error = await importedChain(ports, chain, PATH).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "INVALID_INPUT" });
    if (!(error instanceof DramatisError)) throw error;
    expect(error.options.errors?.map(({ path }) => path)).toContain(`${PATH}${at}`);
  });

  test("a question to a person in a hook, which a turn does not wait for", async () => {
    const chain = await chainOf("lib/full");
    const [question] = [{ ref: "ask", action: { kind: "human.input", prompt: "Well?" } }];
    Object.assign(chain.contextAssembly ?? {}, {
      task: {
        id: "ask",
        version: 1,
        hash: "",
        library: "lib",
        inputSchema: { type: "object" },
        steps: [question],
      },
    });
    await expect(importedChain(ports, chain, PATH)).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("asks a person"),
    });
  });
});

test("BACKUP-14 versions with one value changed are refused with a place, or are such that an import takes them again", async () => {
  const chains = await Promise.all(["lib/full", "lib/learner"].map(chainOf));
  let imported = 0;
  const property = fc.asyncProperty(
    fc.constantFrom(...chains),
    fc.nat(100_000),
    fc.option(anything, { nil: undefined, freq: 8 }),
    async (chain, place, other) => {
      const places = placesIn(chain);
      const changed = withValue(chain, places[place % places.length] ?? [], other);
      try {
        const first = JSON.parse(JSON.stringify(await importedChain(ports, changed, PATH)));
        const again = JSON.parse(JSON.stringify(await importedChain(ports, first, PATH)));
        expect(again).toEqual(first);
        imported += 1;
      } catch (error) {
        if (!(error instanceof DramatisError)) throw error;
        expect(error.code).toBe("INVALID_INPUT");
        for (const { path } of error.options.errors ?? [{ path: "" }])
          expect(path).toMatch(/^\/agents\/0\/chain/);
      }
    },
  );
  await fc.assert(property, { numRuns: 400 });
  expect(imported).toBeGreaterThan(10);
});
