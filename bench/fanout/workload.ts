/** The workload of every system: graphs of one trivial task, their inputs, and what their runs must return. */
import type { Json } from "../../src/shared/json.ts";

/** `langgraph-default` is LangGraph without a wait for the disk at each commit. */
export const SYSTEMS = [
  "dramatis",
  "langgraph",
  "langgraph-default",
  "mastra",
  "cloudflare-workflows",
] as const;

export type SystemName = (typeof SYSTEMS)[number];

/** The graphs. `single` is one task, for what every run costs. */
export const GRAPHS = ["single", "fan-out", "chain", "nested"] as const;

export type Graph = (typeof GRAPHS)[number];

/** Tasks of the graph `chain`, one after another. */
export const CHAIN = 50;

/** The task of every node: the work itself takes no time that a clock shows. */
export function next(value: number): number {
  return value + 1;
}

/** The input of a run: a number, the items of the branches, or the items of the branches of each branch. */
export type RunInput = number | number[] | number[][];

export interface Metric {
  readonly name: string;
  readonly graph: Graph;
  readonly input: RunInput;
  /** Nodes that run, those that fan out and merge included. */
  readonly nodes: number;
  readonly systems: readonly SystemName[];
  /** Runs of a sample, one after another. */
  readonly runs: number;
}

export const METRICS: readonly Metric[] = [
  { name: "single", graph: "single", input: 0, nodes: 1, systems: SYSTEMS, runs: 3 },
  fanOut(100, SYSTEMS, 2),
  { name: "chain-50", graph: "chain", input: 0, nodes: CHAIN, systems: SYSTEMS, runs: 1 },
  {
    name: "nested-10x10",
    graph: "nested",
    input: Array.from({ length: 10 }, (_, row) => numbers(10).map((n) => 10 * row + n)),
    nodes: 1 + 10 * (1 + 10 + 1) + 1,
    systems: SYSTEMS,
    runs: 1,
  },
  fanOut(1_000, ["dramatis"], 1),
  fanOut(4_999, ["dramatis"], 1),
  fanOut(20_000, ["dramatis"], 1),
];

function fanOut(count: number, systems: readonly SystemName[], runs: number): Metric {
  return {
    ...{ name: `fan-out-${count}`, graph: "fan-out", nodes: count + 2 },
    ...{ input: numbers(count), systems, runs },
  };
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n);
}

/** Returns what a run must return. */
export function expected({ graph, input }: Metric): Json {
  if (typeof input === "number") return input + (graph === "chain" ? CHAIN : 1);
  return input.map((item) => (typeof item === "number" ? next(item) : item.map(next)));
}
