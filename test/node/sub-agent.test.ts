/** Sub-agents: templates in code, their bounds for any tools, and their quota. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { callRefusal } from "../../src/agents/conversation/core/planning/call-guards.ts";
import { checkToolCall } from "../../src/agents/conversation/core/planning/tool-call.ts";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
import { defineSubAgent, type SubAgentOptions } from "../../src/library/define/define-sub-agent.ts";
import { modelInputSchema } from "../../src/library/tools/agent-tool.ts";
import { boundedChain, boundsOf } from "../../src/library/tools/sub-agent.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { NetworkPolicy, SubAgentBounds, SubAgentTemplate } from "../../src/protocol/sub-agent.ts";
import { checkBudget } from "../../src/shared/json-schema/violations.ts";
import { reportTemplates } from "../../src/startup.ts";
import { PIN, PLAIN_CHAIN, recordOf } from "../support/records.ts";

const options: SubAgentOptions = {
  agent: "researcher",
  description: "Reads pages.",
  tools: ["read_page"],
};

function chainWith(...tools: { name: string; hosts?: string[]; agent?: string }[]) {
  return {
    ...PLAIN_CHAIN,
    tools: tools.map(({ name, hosts, agent }) => ({
      ...{ ...PIN, library: "lib", id: name },
      definition: {
        ...{
          name,
          description: name,
          inputSchema: { type: "object" },
          effect: "pure" as const,
          timeoutMs: 1,
        },
        ...(hosts && { hosts }),
        ...(agent === undefined ? {} : { target: { agent } }),
      },
    })),
  };
}

const namesIn = (chain: { tools: readonly { definition: { name: string } }[] }) =>
  chain.tools.map(({ definition }) => definition.name);

describe("a template in code", () => {
  test("is the tool agent_spawn_<template>; its model gives a goal and no mode", () => {
    const { id, definition } = defineSubAgent("reader", options);
    expect(id).toBe("agent_spawn_reader");
    expect(definition).toMatchObject({
      name: "agent_spawn_reader",
      timeoutMs: 300_000,
      target: { agent: "researcher", template: { name: "reader", tools: ["read_page"] } },
    });
    expect(modelInputSchema(definition)).toMatchObject({ required: ["goal"] });
    expect(JSON.stringify(modelInputSchema(definition))).not.toContain("invocationMode");
  });

  test.each<[Partial<SubAgentOptions>, string]>([
    [{ network: ["https://manual.example/"] }, "host"],
    [{ network: "manual.example" as "any" }, 'network: Must be "any", "none" or a list of hosts, as in ["'],
    [{ quota: 0 }, "quota"],
    [{ quota: 33 }, "quota"],
    [{ tools: Array(101).fill("t") }, "tools"],
  ])("%j is refused with its place", (wrong, place) => {
    expect(() => defineSubAgent("reader", { ...options, ...wrong })).toThrow(place);
  });

  test("a target with a template cannot join", () => {
    const template = { name: "reader", tools: [] };
    const target = { agent: "researcher", mode: "loop_in" as const, template };
    expect(() => defineTool({ name: "join", description: "Joins.", target })).toThrow("cannot join");
  });
});

test("AGENTTOOL-1 the names of members that choose the mode of a call are reserved, if the model may choose", () => {
  const define = (member: string, more: { handoff?: "custom"; template?: SubAgentTemplate }) => () =>
    defineTool({
      name: "ask",
      description: "Asks.",
      input: z.object({ message: z.string(), [member]: z.string() }),
      target: { agent: "lawyer", ...more },
    });
  expect(define("invocationMode", {})).toThrow("/input/invocationMode: Is reserved");
  expect(define("handoff", { handoff: "custom" })).toThrow("/input/handoff: Is reserved");
  expect(define("handoff", {})).not.toThrow();
  expect(define("invocationMode", { template: { name: "t", tools: [] } })).not.toThrow();
});

describe("bounds", () => {
  const names = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { maxLength: 4 });
  const hosts = fc.uniqueArray(fc.constantFrom("x.example", "y.example", "z.example:8080"), { maxLength: 3 });
  const network: fc.Arbitrary<NetworkPolicy> = fc.oneof(
    fc.constantFrom("any" as const, "none" as const),
    hosts,
  );
  const template: fc.Arbitrary<SubAgentTemplate> = fc.record(
    { name: fc.constant("t"), tools: names, network },
    { requiredKeys: ["name", "tools"] },
  );
  const chain = fc
    .uniqueArray(
      fc.record(
        { name: fc.constantFrom("a", "b", "c", "d", "e"), hosts, agent: fc.constant("other") },
        { requiredKeys: ["name"] },
      ),
      { selector: ({ name }) => name },
    )
    .map((tools) => chainWith(...tools));

  test("SPAWN-3 a template below never widens the bounds above, for any agent", () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(template, { nil: undefined }), { minLength: 1, maxLength: 4 }),
        chain,
        (path, agent) => {
          let bounds: SubAgentBounds | undefined;
          let allowed = namesIn(agent);
          for (const one of path) {
            bounds = boundsOf(bounds, one);
            if (bounds === undefined) continue;
            // The check of the names is another test's.
            const here = namesIn(boundedChain("other", agent, { ...bounds, inherited: true }));
            expect(allowed).toEqual(expect.arrayContaining(here));
            allowed = here;
          }
        },
      ),
    );
  });

  test("SPAWN-1 SPAWN-2 only named tools with allowed hosts remain", () => {
    fc.assert(
      fc.property(template, chain, (one, agent) => {
        const bounds = boundsOf(undefined, one) ?? expect.fail();
        for (const { definition } of boundedChain("other", agent, { ...bounds, inherited: true }).tools) {
          expect(one.tools).toContain(definition.name);
          if (one.network === "any" || definition.target !== undefined) continue;
          const allowed = Array.isArray(one.network) ? one.network : [];
          expect(allowed).toEqual(expect.arrayContaining(definition.hosts ?? ["unknown"]));
        }
      }),
    );
  });

  test("SPAWN-2 without a network, only tools without hosts remain", () => {
    const agent = chainWith(
      { name: "sum", hosts: [] },
      { name: "read", hosts: ["x.example"] },
      { name: "any" },
    );
    const bounds = { name: "t", tools: ["sum", "read", "any"], network: "none" as const };
    expect(namesIn(boundedChain("other", agent, bounds))).toEqual(["sum"]);
    const some = { ...bounds, network: ["x.example"] };
    expect(namesIn(boundedChain("other", agent, some))).toEqual(["sum", "read"]);
    expect(namesIn(boundedChain("other", agent, { ...bounds, network: "any" }))).toEqual([
      "sum",
      "read",
      "any",
    ]);
  });

  test("a template with a tool that its agent lacks gets an error", () => {
    const bounds = { name: "reader", tools: ["red_page"], network: "none" as const };
    expect(() => boundedChain("researcher", chainWith({ name: "read_page" }), bounds)).toThrow(
      'The template "reader" allows the tool "red_page", which the agent "researcher" does not have.',
    );
  });
});

test("SPAWN-2 the start reports tools of a template that its agent lacks, or that the network keeps from it", () => {
  const warnings: string[] = [];
  const warn = vi.spyOn(console, "warn").mockImplementation((text: string) => void warnings.push(text));
  const tool = (name: string, hosts?: string[]) =>
    defineTool({ name, description: name, input: z.object({}), execute: () => 1, ...(hosts && { hosts }) });
  const spawning = (name: string, more: Partial<SubAgentOptions>) =>
    defineSubAgent(name, { agent: "worker", description: "Works.", tools: ["sum"], ...more });
  const identity = { systemPrompt: "You work." };
  const worker = definePersona("worker", { identity, tools: { toolIds: ["sum", "read", "nothing"] } });
  const library = defineLibrary("crew", {
    personas: [worker],
    tools: [
      ...[tool("sum"), tool("read", ["a.example", "b.example"]), tool("nothing", [])],
      spawning("plain", {}),
      spawning("typo", { tools: ["summ"] }),
      spawning("some", { tools: ["sum", "read"], network: ["a.example"] }),
      spawning("well", { tools: ["sum", "read", "nothing"], network: "any" }),
      spawning("alone", { tools: ["nothing"] }),
      spawning("elsewhere", { agent: "unknown", tools: ["x"] }),
    ],
  });
  reportTemplates([{ id: "worker", persona: "crew/worker" }], [library]);
  const declare = 'Declare the `hosts` of "sum", `[]` if its code reaches none, or set `network: "any"`.';
  expect(warnings).toEqual([
    `Tool "crew/agent_spawn_plain": sub-agents do not get the tool "sum": its template allows no network, and the tool declares no hosts. ${declare}`,
    'Tool "crew/agent_spawn_typo": its template names the tool "summ", which the agent "worker" does not have, so its calls fail. The agent has: sum, read, nothing.',
    `Tool "crew/agent_spawn_some": sub-agents do not get the tool "sum": its template allows some hosts only, and the tool declares no hosts. ${declare}`,
    'Tool "crew/agent_spawn_some": sub-agents do not get the tool "read": its template allows some hosts only, and the tool reaches b.example. Allow this host in `network`, or remove the tool from the template.',
  ]);
  // Tools of an undeployed library are unknown. The same applies to the tools of another version of a persona.
  warnings.length = 0;
  const inline = (...toolIds: string[]) => ({ id: "worker", persona: { identity, tools: { toolIds } } });
  const some = spawning("some", { tools: ["posted", "sum"], network: "any" });
  const more = defineLibrary("more", { tools: [some] });
  reportTemplates([inline("authored/posted", "crew/sum")], [library, more]);
  reportTemplates([{ id: "worker", persona: "crew/worker@2" }], [more]);
  expect(warnings.filter((text) => text.includes("more/"))).toEqual([]);
  reportTemplates([inline("crew/sum")], [more, library]);
  expect(warnings.some((text) => text.includes('"posted", which the agent "worker" does not have'))).toBe(
    true,
  );
  warn.mockRestore();
});

test("SPAWN-4 E25 the fourth sub-agent of a template is refused, sub-agents of other templates are not", () => {
  const tools = ["reader", "writer"].map((name) => {
    const { id, definition } = defineSubAgent(name, { ...options, ...(name === "writer" && { quota: 1 }) });
    return { ...PIN, library: "lib", id, definition };
  });
  const record = recordOf({ ...PLAIN_CHAIN, tools });
  const spawn = (template: string) => ({
    toolCallId: "c",
    name: `agent_spawn_${template}`,
    agent: { id: "researcher", mode: "delegate" as const, template },
    input: { goal: "Read." },
  });
  const readers = Array.from({ length: 3 }, () => spawn("reader"));
  const refused = (template: string, open: typeof readers) =>
    callRefusal(record, { agentId: record.agents[0].id }, spawn(template), open)?.error;
  expect(refused("reader", readers.slice(1))).toBeUndefined();
  expect(refused("reader", readers)).toMatchObject({
    code: "EXECUTION_FAILED",
    message: 'At most 3 sub-agents of "reader" may work at a time. Spawn another when one has ended.',
    retriable: true,
  });
  expect(refused("writer", readers)).toBeUndefined();
  expect(refused("writer", [spawn("writer")])).toMatchObject({
    message: expect.stringContaining("At most 1"),
  });
});

test("DELEGATE-10 only a message that is too large for its envelope is refused", () => {
  const { id, definition } = defineSubAgent("reader", options);
  const record = recordOf({ ...PLAIN_CHAIN, tools: [{ ...PIN, library: "lib", id, definition }] });
  const turn = { agentId: record.agents[0].id, operations: [] };
  const check = (goal: string) => {
    const call = { id: "c", name: definition.name, arguments: { goal } };
    return checkToolCall(
      record,
      turn,
      call,
      { toolCallId: "c", taint: [] },
      { now: 1, gate: allowAll, stem: "" },
      checkBudget(),
    ).result?.error;
  };
  expect(check("a".repeat(131_072))).toBeUndefined();
  expect(check("\u0001".repeat(87_380))).toBeUndefined();
  expect(check("\u0001".repeat(87_390))).toMatchObject({
    code: "INVALID_INPUT",
    message: "The message to the agent has 524342 bytes as JSON; the limit is 524288.",
  });
});
