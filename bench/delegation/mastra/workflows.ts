/**
 * Mastra's workflows on Node, for the case `fanout`: written as in its guide to control flow, with `foreach` for branches. As by default,
 * Mastra stores snapshots, here in a libSQL file.
 *
 * Argument: the path of the database.
 */
import { Mastra } from "@mastra/core/mastra";
import { createStep, createWorkflow } from "@mastra/core/workflows";
import { LibSQLStore } from "@mastra/libsql";
import { z } from "zod";
import { open } from "../../fanout/node-door.ts";
import { CHAIN, type Graph, next, type RunInput } from "../../fanout/workload.ts";

const [file = ""] = process.argv.slice(2);

const list = z.array(z.number());
const lists = z.array(list);

const stepOf = (id: string) =>
  createStep({
    ...{ id, inputSchema: z.number(), outputSchema: z.number() },
    execute: async ({ inputData }) => next(inputData),
  });
const merge = createStep({
  ...{ id: "merge", inputSchema: list, outputSchema: list },
  execute: async ({ inputData }) => inputData,
});
const mergeRows = createStep({
  ...{ id: "merge-rows", inputSchema: lists, outputSchema: lists },
  execute: async ({ inputData }) => inputData,
});

const fanOutOf = (id: string, concurrency: number) =>
  createWorkflow({ id, inputSchema: list, outputSchema: list })
    .foreach(stepOf("work"), { concurrency })
    .then(merge)
    .commit();

function chainOf(id: string, length: number) {
  const empty = createWorkflow({ id, inputSchema: z.number(), outputSchema: z.number() });
  let chain = empty.then(stepOf("n0"));
  for (let n = 1; n < length; n += 1) chain = chain.then(stepOf(`n${n}`));
  return chain.commit();
}

const nested = createWorkflow({ id: "nested", inputSchema: lists, outputSchema: lists })
  .foreach(fanOutOf("row", 10), { concurrency: 10 })
  .then(mergeRows)
  .commit();

const mastra = new Mastra({
  workflows: {
    single: chainOf("single", 1),
    chain: chainOf("chain", CHAIN),
    "fan-out": fanOutOf("fan-out", 100),
    nested,
  },
  storage: new LibSQLStore({ id: "storage", url: `file:${file}` }),
  logger: false,
});

async function run(name: Graph, input: RunInput): Promise<unknown> {
  const workflow = await mastra.getWorkflow(name).createRun();
  // SAFETY: the workload has the right input for each graph. The union of workflows has no common call signature.
  const result = await workflow.start({ inputData: input as never });
  if (result.status !== "success") throw new Error(`The run is ${result.status}.`);
  return result.result;
}

open(run);
