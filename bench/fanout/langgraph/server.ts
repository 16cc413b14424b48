/**
 * LangGraph on Node: graphs as in its guides to `Send` and subgraphs, with its SQLite checkpointer in a file. `durability: "sync"` stores
 * each step before the next step begins.
 *
 * Arguments: the path of the database, and the synchronous mode of SQLite. `FULL` waits for the disk at every commit, as workerd does.
 * `NORMAL`, the checkpointer's default, waits only at checkpoints of SQLite.
 */
import { Annotation, END, Send, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { open } from "../node-door.ts";
import { CHAIN, type Graph, next, type RunInput } from "../workload.ts";

const [file = "", synchronous = "FULL"] = process.argv.slice(2);
const checkpointer = SqliteSaver.fromConnString(file);
// SAFETY: the checkpointer uses a database of better-sqlite3. The types of that package are not installed.
(checkpointer as unknown as { db: { pragma(text: string): unknown } }).db.pragma(
  `synchronous = ${synchronous}`,
);

/** Collects the results of branches. LangGraph applies their updates in the order of the branches. */
const Fan = Annotation.Root({
  items: Annotation<number[]>,
  item: Annotation<number>,
  collected: Annotation<number[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
  output: Annotation<number[]>,
});

const fanOut = new StateGraph(Fan)
  .addNode("start", () => ({}))
  .addNode("work", ({ item }: typeof Fan.State) => ({ collected: [next(item)] }))
  .addNode("merge", ({ collected }) => ({ output: collected }))
  .addEdge(START, "start")
  .addConditionalEdges("start", ({ items }) => items.map((item) => new Send("work", { item })), ["work"])
  .addEdge("work", "merge")
  .addEdge("merge", END);

const Nested = Annotation.Root({
  rows: Annotation<number[][]>,
  collected: Annotation<number[][]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
  output: Annotation<number[][]>,
});

/** A branch runs a subgraph that fans out again. */
const row = fanOut.compile();

const nested = new StateGraph(Nested)
  .addNode("start", () => ({}))
  .addNode("row", async (state: typeof Fan.State) => ({ collected: [(await row.invoke(state)).output] }))
  .addNode("merge", ({ collected }) => ({ output: collected }))
  .addEdge(START, "start")
  .addConditionalEdges("start", ({ rows }) => rows.map((items) => new Send("row", { items })), ["row"])
  .addEdge("row", "merge")
  .addEdge("merge", END);

const Value = Annotation.Root({ output: Annotation<number> });

function chainOf(length: number) {
  const names = Array.from({ length }, (_, n) => `n${n}`);
  const graph = new StateGraph(Value);
  for (const name of names) graph.addNode(name, ({ output }) => ({ output: next(output) }));
  // The builder's types contain only nodes that the same expression adds.
  const edge = (from: string, to: string) => graph.addEdge(from as typeof START, to as typeof END);
  for (const [n, name] of names.entries()) edge(names[n - 1] ?? START, name);
  edge(names.at(-1) ?? START, END);
  return graph.compile({ checkpointer });
}

const graphs = {
  single: chainOf(1),
  chain: chainOf(CHAIN),
  "fan-out": fanOut.compile({ checkpointer }),
  nested: nested.compile({ checkpointer }),
};

const FIELDS = { single: "output", chain: "output", "fan-out": "items", nested: "rows" } as const;

async function run(name: Graph, input: RunInput): Promise<unknown> {
  // SAFETY: the workload has the right input for each graph. The union of graphs has no common call signature.
  const graph = graphs[name] as unknown as typeof graphs.chain;
  const { output } = await graph.invoke({ [FIELDS[name]]: input } as never, {
    configurable: { thread_id: crypto.randomUUID() },
    durability: "sync",
    recursionLimit: 2 * CHAIN,
  });
  return output;
}

open(run);
