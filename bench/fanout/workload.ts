/** The workload of every system: graphs of one trivial task, their inputs, and their expected outputs. */
import type { Json } from "../../src/shared/json.ts";

/** The floors of the platform and of its SDK. */
const FLOORS = ["durable-object", "agent"] as const;

/** The systems that Dramatis is compared with. `langgraph-default` is LangGraph with commits that do not wait for the disk. */
export const PEERS = ["langgraph", "langgraph-default", "mastra", "cloudflare-workflows"] as const;

/** The systems that need a process. The process of Dramatis runs the floors, too. */
export const SERVED = ["dramatis", ...PEERS] as const;

export const SYSTEMS = [...SERVED, ...FLOORS] as const;

export type Served = (typeof SERVED)[number];

export type SystemName = (typeof SYSTEMS)[number];

export function isFloor(system: SystemName): system is (typeof FLOORS)[number] {
  return FLOORS.some((floor) => floor === system);
}

/** The graphs. `single` is one task, for the fixed cost of a run. */
export const GRAPHS = ["single", "fan-out", "chain", "nested"] as const;

export type Graph = (typeof GRAPHS)[number];

/** Number of tasks of the graph `chain`. */
export const CHAIN = 50;

/** The task of every node. Its work is too short to measure. */
export function next(value: number): number {
  return value + 1;
}

/** The input of a run: a number, the items of the branches, or the items of the branches of each branch. */
export type RunInput = number | number[] | number[][];

export interface Metric {
  readonly name: string;
  readonly graph: Graph;
  readonly input: RunInput;
  /** Number of nodes that run, with the nodes that fan out and merge. */
  readonly nodes: number;
  readonly systems: readonly SystemName[];
  /** Sequential runs of a sample. */
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

/** Returns the expected output of a run. */
export function expected({ graph, input }: Metric): Json {
  if (typeof input === "number") return input + (graph === "chain" ? CHAIN : 1);
  return input.map((item) => (typeof item === "number" ? next(item) : item.map(next)));
}
