/** Agents in code, and the library that an application collects from them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { collectAgents } from "../../src/library/define/collect-agents.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { type AgentInCode, type AgentOptions, defineAgent } from "../../src/library/define/define-agent.ts";
import { defineSubAgent } from "../../src/library/define/define-sub-agent.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { call, createTestApp, reply } from "../../src/testing/index.ts";

const toolNamed = (name: string) =>
  defineTool({ name, description: `The tool ${name}.`, input: z.object({}), execute: () => name });
const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  execute: ({ city }) => `Sunny in ${city}`,
});
const count = defineTask({
  id: "count",
  description: "Counts words.",
  input: z.object({ text: z.string() }),
  effect: "pure",
  execute: ({ text }) => text.split(" ").length,
});
const agentNamed = (id: string, options: Partial<AgentOptions> = {}) =>
  defineAgent({ id, instructions: `You are ${id}.`, ...options });
const developer = agentNamed("developer", { description: "Writes code.", tools: [weather] });

/** Returns the ids of the library `app` by kind. */
function idsOf(...agents: AgentInCode[]) {
  const {
    personas = [],
    tools = [],
    modelProfiles = [],
    tasks = [],
    workflows = [],
  } = collectAgents({ agents }).libraries[0] ?? {};
  const parts = { personas, tools, modelProfiles, tasks, workflows };
  return Object.fromEntries(Object.entries(parts).map(([kind, all]) => [kind, all.map(({ id }) => id)]));
}

describe("I7 AGENTCODE-1 COLLECT-1: an agent brings its definitions along", () => {
  it("I7 AGENTCODE-1 answers with one agent and one tool, without a library", async () => {
    const app = createTestApp({ agents: [agentNamed("guide", { tools: [weather] })] });
    app.model.script(call("weather", { city: "Rome" }), reply("Sunny."));
    const turn = await app.send("guide", "What is the weather in Rome?");
    app.close();
    expect(turn).toMatchObject({ text: "Sunny.", calls: [{ name: "weather", output: "Sunny in Rome" }] });
  });

  it("I7 AGENTCODE-1 asks another agent in code, which nothing else declares", async () => {
    const manager = agentNamed("manager", { agents: [developer] });
    const app = createTestApp({ agents: [manager] });
    app.model.script(
      call("ask_developer", { message: "Write it." }),
      reply("Done."),
      reply("It is written."),
    );
    expect(await app.send("manager", "Write it.")).toMatchObject({ text: "It is written." });
    app.close();
  });

  it("I7 COLLECT-1 collects tools, tasks, workflows, profiles and agents once, also through tools, nodes and hooks", () => {
    const reviewer = agentNamed("reviewer", { model: "openai/gpt-4.1-mini" });
    const review = defineWorkflow("review", {
      description: "Reviews a text.",
      input: z.object({ text: z.string() }),
      initialNode: "ask",
      nodes: [node("ask", { agent: reviewer, inputMapping: { message: "input.text" } })],
    });
    const reader = defineSubAgent("reader", {
      agent: agentNamed("researcher"),
      description: "Reads.",
      tools: [],
    });
    const both = { tools: [count, review, weather, reader], agents: [developer] };
    const agents = [agentNamed("one", both), agentNamed("two", both)];
    const expected = {
      personas: ["developer", "one", "researcher", "reviewer", "two"],
      tools: ["agent_spawn_reader", "ask_developer", "count-tool", "review", "weather"],
      modelProfiles: ["reviewer"],
      tasks: ["count"],
      workflows: ["review"],
    };
    expect(idsOf(...agents)).toEqual(expected);
    expect(idsOf(...agents.toReversed())).toEqual(expected);
    const declared = collectAgents({ agents }).agents;
    expect(declared.map(({ id }) => id)).toEqual(["one", "two", "developer", "researcher", "reviewer"]);
    expect(declared[0]).toEqual({ id: "one", persona: "app/one" });
  });

  it("I7 COLLECT-1 adds nothing to an application of libraries", () => {
    const declared = { id: "guide", persona: "my/guide" };
    expect(collectAgents({ libraries: [], agents: [declared] })).toEqual({
      libraries: [],
      agents: [declared],
    });
    expect(collectAgents({})).toEqual({ libraries: [], agents: [] });
  });

  it("I7 COLLECT-1 COLLECT-3 finds each agent and tool of any graph once, in any order of the roots", () => {
    const names = ["a", "b", "c", "d", "e"];
    const graph = fc.record({
      edges: fc.array(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names), fc.boolean())),
      uses: fc.array(fc.tuple(fc.constantFrom(...names), fc.constantFrom("x", "y", "z"))),
      roots: fc.shuffledSubarray(names, { minLength: 1 }),
    });
    fc.assert(
      fc.property(graph, ({ edges, uses, roots }) => {
        const tools = new Map(["x", "y", "z"].map((name) => [name, toolNamed(name)]));
        const agents = new Map<string, AgentInCode>();
        for (const name of names) {
          const used = new Set(uses.filter(([user]) => user === name).map(([, tool]) => tool));
          const asked = edges.filter(([from, to]) => from === name && to !== name);
          agents.set(
            name,
            agentNamed(name, {
              tools: [...used].map((tool) => tools.get(tool) as never),
              agents: () => [
                ...new Map(
                  asked.map(([, to, byId]) => [to, byId ? to : (agents.get(to) as AgentInCode)]),
                ).values(),
              ],
            }),
          );
        }
        const held = (ids: string[]) => ids.map((id) => agents.get(id) as AgentInCode);
        // An id does not bring its agent along.
        const reached = new Set(held(roots));
        for (const agent of reached)
          for (const other of agent.colleagues()) if (typeof other !== "string") reached.add(other);
        const found = idsOf(...held(roots));
        expect(found.personas).toEqual([...reached].map(({ id }) => id).toSorted());
        expect(idsOf(...held(roots.toReversed()))).toEqual(found);
        const { libraries, agents: declared } = collectAgents({ agents: held(roots) });
        expect(declared.map(({ id }) => id).slice(0, roots.length)).toEqual(roots);
        for (const { id, definition } of libraries[0]?.personas ?? []) {
          const { tools: own, colleagues } = agents.get(id) as AgentInCode;
          expect(definition.tools?.toolIds ?? []).toEqual([
            ...own.map((tool) => (tool as { id: string }).id),
            ...colleagues().map((other) => `ask_${typeof other === "string" ? other : other.id}`),
          ]);
        }
        expect(() => new DeployedCode(libraries)).not.toThrow();
      }),
    );
  });

  it("I7 COLLECT-3 lets agents ask each other, by a function or by id", () => {
    const first = agentNamed("first", { agents: () => [second] });
    const second: AgentInCode = agentNamed("second", { agents: ["first"] });
    expect(idsOf(first)).toMatchObject({
      personas: ["first", "second"],
      tools: ["ask_first", "ask_second"],
    });
  });
});

describe("I7 AGENTCODE-2: settings", () => {
  it("I7 AGENTCODE-2 `memory` is a scope that learns, or the settings of a persona", () => {
    expect(agentNamed("guide", { memory: "user" }).definition.memory).toEqual({
      scope: "user",
      extract: true,
    });
    expect(agentNamed("guide", { memory: { scope: "agent" } }).definition.memory).toEqual({ scope: "agent" });
    expect(agentNamed("guide").definition.memory).toBeUndefined();
  });

  it("I7 `projectIds` are the projects of the agent", () => {
    const agent = defineAgent({ id: "one", instructions: "Help.", projectIds: ["shop"] });
    expect(collectAgents({ agents: [agent] }).agents).toEqual([
      { id: "one", persona: "app/one", projectIds: ["shop"] },
    ]);
    expect(() => defineAgent({ id: "one", instructions: "Help.", projectIds: ["../shop"] })).toThrow(
      "/projectIds/0",
    );
  });

  it("I7 `model` is a provider with its model, or a profile", () => {
    const profile = { provider: "workers-ai", modelId: "@cf/meta/llama" } as const;
    expect(agentNamed("guide", { model: "cloudflare/@cf/meta/llama" }).modelProfile).toEqual({
      id: "guide",
      definition: profile,
    });
    expect(agentNamed("guide", { model: profile }).modelProfile?.definition).toEqual(profile);
  });
});

describe("I7 COLLECT-2: mistakes are typed errors that say what to change", () => {
  const rejected = (make: () => unknown, message: string) =>
    expect(make).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringContaining(message) }),
    );

  it("I7 AGENTCODE-2 refuses an unknown scope and other settings in the words of `defineAgent`", () => {
    const made = (options: object) => () => agentNamed("guide", options);
    expect(made({ memory: "users" })).toThrow(
      'Agent "guide" is not valid: /memory: Must be "agent", "user" or "conversation", or the memory settings',
    );
    expect(made({ memory: { extract: true } })).toThrow(/^Agent "guide": \/memory\/scope: /);
    expect(made({ budget: { tokenz: 1 } })).toThrow(/^Agent "guide" is not valid: \/budget\/tokenz: /);
  });

  it("I7 COLLECT-2 refuses two different tools, agents or tasks with one id", () => {
    const two = [
      agentNamed("one", { tools: [toolNamed("x")] }),
      agentNamed("two", { tools: [toolNamed("x")] }),
    ];
    rejected(
      () => collectAgents({ agents: two }),
      'Two different tools have the id "x": in the agent "one" and in the agent "two". Rename one of them, or use the same object in both places.',
    );
    rejected(
      () => collectAgents({ agents: [agentNamed("one", { tools: [toolNamed("x"), toolNamed("x")] })] }),
      'Two different tools have the id "x": both in the agent "one".',
    );
    rejected(
      () => collectAgents({ agents: [{ id: "plain", instructions: "You help." }] }),
      'Agent "plain": Make it with defineAgent(…).',
    );
    rejected(
      // SAFETY: a circular import makes it undefined.
      () => collectAgents({ agents: [undefined as unknown as AgentInCode] }),
      "/agents/0: Is undefined. Do two modules import each other?",
    );
    rejected(
      () => collectAgents({ agents: [agentNamed("one"), agentNamed("one")] }),
      'Two different agents have the id "one"',
    );
    rejected(
      () => collectAgents({ agents: [agentNamed("one", { agents: [agentNamed("one")] })] }),
      'in `agents` and in the agent "one"',
    );
  });

  it("I7 COLLECT-4 refuses a library with the id of the library of agents, and accepts it without agents in code", () => {
    const libraries = [defineLibrary("app", {})];
    rejected(
      () => createTestApp({ libraries, agents: [agentNamed("one")] }),
      'The library "app" needs another id: agents made with defineAgent(…), and `workflows`, are in a library of this id.',
    );
    expect(collectAgents({ libraries, agents: [{ id: "one", persona: "app/one" }] }).libraries).toEqual(
      libraries,
    );
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["no instructions", { instructions: undefined }, "/instructions: Must be a text"],
    ["a persona's field", { systemPrompt: "x" }, "systemPrompt"],
    ["a bad id", { id: "My Guide" }, 'Agent "My Guide" is not valid: /id: An agent\'s id is'],
    ["a bad model", { model: "gpt-4.1" }, '/model: Must be "provider/model"'],
    [
      "an unknown provider",
      { model: "opnai/gpt-4.1" },
      'Model profile "guide" is not valid: /provider: "opnai" is not a provider. The providers are: openai, openai-responses, ',
    ],
    [
      "a tool of a circular import",
      { tools: [weather, undefined] },
      "/tools/1: Is undefined. Do two modules import each other?",
    ],
    [
      "an agent of a circular import",
      { agents: [undefined] },
      "/agents/0: Is undefined. Do two modules import each other? A function helps: `agents: () => […]`.",
    ],
    ["a tool by definition", { tools: [7] }, "/tools/0: Must be made with defineTool(…)"],
    ["an agent as plain data", { agents: [{ id: "x" }] }, "/agents/0: Must be made with defineAgent(…)"],
    [
      "a task without description",
      { tools: [defineTask({ id: "t", input: z.object({}), execute: () => 1 })] },
      'Agent "guide": /tools/0: The task "t" needs a `description`',
    ],
  ])("I7 refuses %s", (_, options, message) => {
    rejected(
      () => defineAgent({ id: "guide", instructions: "You help.", ...options } as AgentOptions),
      message,
    );
  });
});
