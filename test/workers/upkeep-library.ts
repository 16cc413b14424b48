/** A workflow and a task that join memories in the tests of upkeep. */
import { z } from "zod";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";

const input = z.looseObject({ memories: z.array(z.looseObject({ id: z.string() })) });

const count = defineTask({
  id: "count",
  input,
  effect: "pure",
  execute: ({ memories }) => [
    {
      op: "write",
      content: `Ann walked ${memories.length} routes.`,
      derivedFrom: memories.map(({ id }) => id),
    },
  ],
});

const join = defineWorkflow("join", {
  input,
  context: z.object({ made: z.unknown() }),
  initialNode: "count",
  nodes: [
    node("count", {
      task: count,
      inputMapping: { memories: "input.memories" },
      outputMapping: { "state.made": "result" },
    }),
  ],
  outputMapping: { operations: "state.made" },
});

const persona = (id: string, by?: { task: string } | { workflow: string }) =>
  definePersona(id, {
    identity: { systemPrompt: "You are a test." },
    memory: { scope: "user", consolidation: { minimum: 3, ...(by && { by }) } },
  });

/** The personas `own`, `by_task` and `by_workflow` join episodes of three and more. */
export const upkeepLibrary = defineLibrary("upkeep", {
  tasks: [count],
  workflows: [join],
  personas: [
    persona("own"),
    persona("by_task", { task: "count" }),
    persona("by_workflow", { workflow: "join" }),
  ],
});
