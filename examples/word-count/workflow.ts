/** A workflow that counts the words of many texts at the same time, and adds them up. TypeScript checks the paths of its mappings. */
import { z } from "zod";
import { defineLibrary, defineTask, defineWorkflow, node, transition } from "../../src/portable.ts";

const count = defineTask({
  id: "count",
  input: z.object({ text: z.string() }),
  output: z.object({ words: z.number() }),
  effect: "pure",
  execute: ({ text }) => ({ words: text.split(/\s+/).filter((word) => word !== "").length }),
});

const words = defineWorkflow("words", {
  input: z.object({ texts: z.array(z.string()) }),
  output: z.object({ total: z.number() }),
  context: z.object({ counts: z.array(z.number()) }),
  initialNode: "start",
  nodes: [node("start"), node("count", { task: count, inputMapping: { text: "text" } }), node("end")],
  transitions: [
    transition({
      from: "start",
      to: "count",
      siblingGroup: "texts",
      foreach: { collection: "input.texts", itemVar: "text" },
    }),
    transition({
      from: "count",
      to: "end",
      synchronization: {
        siblingGroup: "texts",
        strategy: "all",
        merge: { source: "_branch.output.words", target: "state.counts", strategy: "collect" },
      },
    }),
  ],
  outputMapping: { total: "sum(state.counts)" },
});

export const library = defineLibrary("texts", { tasks: [count], workflows: [words] });
