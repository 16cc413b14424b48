/** The definitions of hooks that are workflows: rules of `definePersona` and `defineLibrary`. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary, definePersona, type PersonaOptions } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import { type HookUse, hookInputSchema } from "../../src/library/hooks/hook-inputs.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { Workflow } from "../../src/library/tasks/built.ts";
import type { Persona } from "../../src/protocol/definitions.ts";

const ask = defineTask({
  id: "ask",
  input: z.looseObject({ user_message: z.string() }),
  effect: "pure",
  execute: ({ user_message }) => ({ messages: [{ role: "user", content: user_message }] }),
});

interface Parts {
  input?: z.ZodType;
  output?: z.ZodType;
  outputMapping?: Record<string, string>;
}

/** A workflow over the task, or a workflow that only maps its input. */
const flow = (
  id: string,
  { input = z.looseObject({ user_message: z.string() }), output, outputMapping }: Parts = {},
): Workflow =>
  defineWorkflow(id, {
    input,
    ...(output && { output }),
    context: z.object({ made: z.unknown() }),
    initialNode: "only",
    nodes: [node("only", outputMapping ? {} : { task: ask, outputMapping: { "state.made": "result" } })],
    outputMapping: outputMapping ?? { model: "'m'", messages: "state.made.messages" },
  });

const identity = { systemPrompt: "Test." };
const withHooks = (memory: PersonaOptions["memory"]) =>
  defineLibrary("lib", {
    tasks: [ask],
    workflows: [flow("named")],
    personas: [
      definePersona("guide", {
        identity,
        ...(memory && { memory: { ...(memory.memoryExtraction && { scope: "agent" }), ...memory } }),
      }),
    ],
  });

describe("a persona with a workflow as its hook", () => {
  test("HOOKPIN-1 names the id of an inline workflow, and its library has the workflow and its task", async () => {
    const assemble = flow("assemble");
    const library = withHooks({ contextAssembly: { workflow: assemble } });
    expect(library.personas[0]?.definition.memory).toEqual({ contextAssembly: { workflow: "assemble" } });
    expect(library.workflows).toContain(assemble);
    const registry = new Registry(new DeployedCode([library]));
    const { contextAssembly } = await resolveChain(registry, "lib/guide", {
      provider: "offline",
      modelId: "offline-1",
    });
    expect(contextAssembly).toMatchObject({
      ...{ library: "lib", id: "assemble", effect: "idempotent" },
      workflow: {
        id: "assemble",
        definition: assemble.definition,
        tasks: { only: { library: "lib", id: "ask" } },
      },
    });
  });

  test("HOOKFORM-1 may name it by a reference, and by the other name", () => {
    const expected = { contextAssembly: { workflow: "named" } };
    expect(withHooks({ contextAssembly: { workflow: "named" } }).personas[0]?.definition.memory).toEqual(
      expected,
    );
    // SAFETY: the other names are accepted, and are not in the type.
    const memory = { contextAssemblyWorkflowId: "named" } as Persona["memory"];
    expect(definePersona("guide", { identity, ...(memory && { memory }) }).definition.memory).toEqual(
      expected,
    );
  });

  test.each<[string, unknown, RegExp]>([
    [
      "both",
      { task: "ask", workflow: "named" },
      /\/memory\/contextAssembly: Names a task and a workflow\. Remove one/,
    ],
    ["neither", {}, /\/memory\/contextAssembly: Must be \{task\}.*or \{workflow\}/],
    [
      "a task instead of a workflow",
      { workflow: "ask" },
      /no workflow "ask"\. It is a task: name it in `task`/,
    ],
    [
      "a workflow instead of a task",
      { task: "named" },
      /no task "named"\. It is a workflow: name it in `workflow`/,
    ],
    ["a workflow that does not exist", { workflow: "nothing" }, /no workflow "nothing"\. It has: named\./],
  ])("HOOKFORM-2 that names %s is refused", (_, hook, message) => {
    // SAFETY: authors without types may write anything.
    expect(() => withHooks({ contextAssembly: hook } as PersonaOptions["memory"])).toThrow(message);
  });
});

/** A closed object of a hook's members, without some. */
function closed(use: HookUse, ...without: string[]): z.ZodType {
  const names = membersOf(use).filter((name) => !without.includes(name));
  return z.strictObject(Object.fromEntries(names.map((name) => [name, z.unknown().optional()])));
}

function membersOf(use: HookUse): string[] {
  return Object.keys(z.object({ properties: z.looseObject({}) }).parse(hookInputSchema(use)).properties);
}

describe("HOOKIN-1 the list of members", () => {
  test("has types that the check compares", () => {
    expect(hookInputSchema("memoryExtraction")).toMatchObject({
      properties: {
        agent_message: { type: ["string", "null"] },
        user_message: { type: ["string", "array"] },
      },
    });
  });

  test("is accepted when it is closed and complete", () => {
    const extraction = flow("extract", {
      input: closed("memoryExtraction"),
      outputMapping: { operations: "[]" },
    });
    const assembly = flow("assemble", { input: closed("contextAssembly") });
    const memory = { contextAssembly: { workflow: assembly }, memoryExtraction: { workflow: extraction } };
    expect(withHooks(memory).workflows).toHaveLength(3);
  });
});

describe("HOOKFIT-1 a task that does not fit", () => {
  const library = (
    input: z.ZodType,
    task = defineTask({ id: "assemble", input, effect: "pure", execute: () => ({}) }),
  ) =>
    defineLibrary("lib", {
      tasks: [task],
      personas: [definePersona("guide", { identity, memory: { contextAssembly: { task: "assemble" } } })],
    });

  test("is refused if it refuses a member, or requires another member", async () => {
    expect(() => library(z.strictObject({ user_message: z.string() }))).toThrow(
      /Persona "guide", \/memory\/contextAssembly\/task: The task "assemble" cannot be `contextAssembly`: .*conversation_id/,
    );
    expect(() => library(z.object({ topic: z.string() }))).toThrow(/no member "topic", which is required/);
    const elsewhere = defineLibrary("other", {
      tasks: [defineTask({ id: "assemble", input: z.strictObject({}), effect: "pure", execute: () => ({}) })],
      personas: [definePersona("guide", { identity })],
    });
    const persona = defineLibrary("lib", {
      personas: [
        definePersona("guide", { identity, memory: { contextAssembly: { task: "other/assemble" } } }),
      ],
    });
    const registry = new Registry(new DeployedCode([elsewhere, persona]));
    const model = { provider: "offline" as const, modelId: "offline-1" };
    await expect(resolveChain(registry, "lib/guide", model)).rejects.toThrow(/"other\/assemble" cannot be/);
  });

  test("is accepted with all members, closed, and with some members", () => {
    expect(library(closed("contextAssembly")).tasks).toHaveLength(1);
    expect(library(z.object({ user_message: z.string() })).tasks).toHaveLength(1);
  });
});

describe("HOOKFIT-1 HOOKFIT-2 a workflow that does not fit", () => {
  const optional = z.string().optional();
  const memory = {
    id: z.string(),
    version: z.number(),
    type: z.string(),
    content: z.string(),
    time: optional,
  };
  const operations = z.object({ operations: z.string() });
  test.each<[string, "contextAssembly" | "memoryExtraction", Parts, RegExp]>([
    [
      "a member that the hook does not give",
      "contextAssembly",
      { input: z.object({ topic: z.string() }), outputMapping: { model: "'m'" } },
      /Persona "guide", \/memory\/contextAssembly\/workflow: .*no member "topic", which is required/,
    ],
    [
      "another type of a member",
      "memoryExtraction",
      { input: z.object({ user_text: z.number() }), outputMapping: { operations: "[]" } },
      /"user_text" that is string but must be number/,
    ],
    [
      "no other members",
      "contextAssembly",
      { input: z.strictObject({ user_message: z.string() }), outputMapping: { model: "'m'" } },
      /rejects members of the hook's input: conversation_id.*additionalProperties/,
    ],
    [
      "all members but memories",
      "contextAssembly",
      { input: closed("contextAssembly", "memories"), outputMapping: { model: "'m'" } },
      /rejects members of the hook's input: memories\. Remove/,
    ],
    [
      "all members but the memories that it may change",
      "memoryExtraction",
      { input: closed("memoryExtraction", "memories"), outputMapping: { operations: "[]" } },
      /rejects members of the hook's input: memories\. Remove/,
    ],
    [
      "a member that is closed",
      "memoryExtraction",
      {
        input: z.looseObject({ caller: z.strictObject({ type: z.string(), userId: z.string().optional() }) }),
        outputMapping: { operations: "[]" },
      },
      /rejects members of the hook's input: caller\.agentId, caller\.turnId/,
    ],
    [
      "items that are closed",
      "memoryExtraction",
      {
        input: z.looseObject({ memories: z.array(z.strictObject({ id: z.string() })).optional() }),
        outputMapping: { operations: "[]" },
      },
      /rejects members of the hook's input: memories\[\]\.version/,
    ],
    [
      "closed memories without the mark of a taint",
      "contextAssembly",
      {
        input: z.looseObject({
          memories: z
            .array(
              z.strictObject({
                ...memory,
                key: optional,
                speaker: optional,
                truncated: z.boolean().optional(),
              }),
            )
            .optional(),
        }),
      },
      /rejects members of the hook's input: memories\[\]\.tainted\. Remove/,
    ],
    [
      "closed moves without tools",
      "memoryExtraction",
      {
        input: z.looseObject({
          turn_transcript: z.array(z.strictObject({ sequence: z.number(), text: optional })),
        }),
        outputMapping: { operations: "[]" },
      },
      /turn_transcript\[\]\.reasoning, turn_transcript\[\]\.tool_call, turn_transcript\[\]\.tool_result/,
    ],
    [
      "closed turns without the operations that they wait for",
      "contextAssembly",
      {
        input: z.looseObject({
          active_turns: z.array(
            z.strictObject({ turn_id: z.string(), input: z.string(), messages: z.array(z.string()) }),
          ),
        }),
      },
      /active_turns\[\]\.pending_operations/,
    ],
    [
      "another type of an optional member",
      "contextAssembly",
      { input: z.looseObject({ summary: z.number().optional() }) },
      /"summary" that is string but must be number/,
    ],
    ["an empty output", "contextAssembly", { outputMapping: {} }, /`outputMapping` is empty/],
    [
      "no operations",
      "memoryExtraction",
      { outputMapping: { facts: "[]" } },
      /no `operations` in `outputMapping`/,
    ],
    [
      "operations that are no list",
      "memoryExtraction",
      { output: operations, outputMapping: { operations: "'none'" } },
      /"operations" that is string but must be array or null/,
    ],
  ])("is refused, with %s", (_, name, parts, message) => {
    expect(() => withHooks({ [name]: { workflow: flow("own", parts) } })).toThrow(message);
  });

  test.each<[string, Parts, RegExp]>([
    [
      "a member that it does not get",
      { input: z.object({ user_text: z.string() }), outputMapping: { operations: "[]" } },
      /\/memory\/consolidation\/by\/workflow: .*no member "user_text", which is required/,
    ],
    [
      "no operations",
      { input: z.looseObject({}), outputMapping: { facts: "[]" } },
      /no `operations` in `outputMapping`/,
    ],
  ])("is refused for a consolidation, with %s", (_, parts, message) => {
    const memory: Persona["memory"] = { scope: "user", consolidation: { by: { workflow: "own" } } };
    const library = () =>
      defineLibrary("lib", {
        workflows: [flow("own", parts)],
        personas: [definePersona("guide", { identity, memory })],
      });
    expect(library).toThrow(message);
  });

  test("a fitting workflow is accepted for both hooks", () => {
    const output = z.object({ operations: z.array(z.unknown()) });
    const memoryExtraction = {
      workflow: flow("remember", {
        input: z.object({ agent_message: z.string().nullable(), user_text: z.string() }),
        ...{ output, outputMapping: { operations: "[{'op': 'write', 'content': input.user_text}]" } },
      }),
    };
    const contextAssembly = { workflow: flow("assemble") };
    expect(withHooks({ contextAssembly, memoryExtraction }).workflows).toHaveLength(3);
  });
});
