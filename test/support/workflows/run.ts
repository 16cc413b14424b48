/** The parts of a run in the reference interpreter, and its records. */
import type { WorkflowSynchronization } from "../../../src/protocol/workflow-definition.ts";
import type { Json, JsonObject } from "../../../src/shared/json.ts";

/** An error as data. */
export interface RunError {
  code: string;
  message: string;
}

/** The outcome of a node's task. */
export type TaskOutcome = { output: Json } | { failure: RunError };

/** The next possible steps of a run, for the caller to choose: a token's task ends, or the time of a fan-in is over. */
export type Choice = { kind: "task"; token: number; node: string } | { kind: "timeout"; fanOut: number };

/** The choices of the interpreter's caller. */
export interface Decisions {
  /** `attempt` counts from 0 the runs of a node on one path. */
  taskOutcome(node: string, path: string, attempt: number, input: Json): TaskOutcome;
  /** Returns the index of the next choice; the first choice if absent. */
  pick?(choices: readonly Choice[]): number;
}

export interface Bounds {
  /** Tokens of the run: then it fails with `RUN_TOO_LONG`. */
  tokens?: number;
  /** Hops of one token: then the run is `endless`. */
  hops?: number;
}

/** The fates of tokens and fan-ins, in order. */
export type TraceEntry =
  | {
      type: "created";
      token: number;
      node: string;
      path: string;
      group: string | null;
      branch: number;
      /** The transition that has made the token; `null` for the first token, and for tokens after fan-ins. */
      by: string | null;
    }
  | { type: "completed" | "failed" | "cancelled"; token: number; node: string }
  | { type: "arrived"; token: number; node: string; transition: string }
  | { type: "fired"; transition: string; tokens: number }
  | { type: "loop_limit_reached"; transition: string }
  | { type: "fan_out"; fanOut: number; group: string; origin: string; total: number }
  | { type: "fan_in"; fanOut: number; group: string; origin: string; target: string; completed: number[] }
  | { type: "unsatisfiable"; fanOut: number }
  | { type: "read"; at: string; path: string; isFound: boolean };

/** The faults that no run of a sound workflow has. */
export type Violation =
  | { kind: "stalled" }
  | { kind: "endless"; node: string }
  | { kind: "crossed" | "repeated" | "deep" | "apart"; transition: string }
  | { kind: "state-in-branch"; at: string }
  | { kind: "fired-twice"; fanOut: number };

/** The end of a run. */
export interface RunResult {
  status: "completed" | "failed" | "stalled" | "unfinished";
  output: JsonObject;
  state: Json;
  error: RunError | null;
  tokens: number;
  trace: TraceEntry[];
  violations: Violation[];
}

/** A scope of `output`: the run, or one branch. */
export interface Scope {
  /** `null` for the run. */
  fanOut: FanOutInstance | null;
  index: number;
  output: Json;
  path: string;
  /** Tokens that have not ended, and fan-outs that are open. */
  active: number;
  /** Tokens of the branch that wait at its fan-in. */
  arrivals: Token[];
  failure: RunError | null;
}

export interface FanOutInstance {
  id: number;
  group: string;
  origin: string;
  outer: Scope;
  branches: Scope[];
  /** The meeting point of its branches; `null` if they do not meet. */
  meeting: { target: string; synchronization: WorkflowSynchronization } | null;
  counts: Counts;
  hops: number;
  isOpen: boolean;
  hasArrival: boolean;
}

/** Iterations of each transition on a token's way. */
export type Counts = Readonly<Record<string, number>>;

/** A pointer of execution. */
export interface Token {
  id: number;
  node: string;
  scope: Scope;
  counts: Counts;
  /** The item of a `foreach`, by its name. */
  items: JsonObject;
  fanIn: Json;
  hops: number;
  status: "active" | "waiting" | "ended";
}
