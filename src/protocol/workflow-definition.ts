/** Definitions of workflows: graphs of nodes and transitions, as pure JSON. */
import type { Mapping } from "../shared/expressions/mapping.ts";
import type { JsonObject } from "../shared/json.ts";
import type { AgentMode } from "./definition-parts.ts";

/** A workflow as data. Expressions are CEL over `input`, `state` and `output`. */
export interface WorkflowDefinition {
  name?: string;
  description?: string;
  /** JSON Schema of the run's input. The input never changes. */
  inputSchema: JsonObject;
  /** JSON Schema of the run's output; any JSON when absent. */
  outputSchema?: JsonObject;
  /** JSON Schema of `state`. Required for writes to `state`. */
  contextSchema?: JsonObject;
  /** The members of the run's output; `{}` when absent. */
  outputMapping?: Mapping;
  /** The `ref` of the node that runs first. */
  initialNode: string;
  nodes: WorkflowNode[];
  transitions: WorkflowTransition[];
  /** Time limit of a run, in milliseconds. */
  timeoutMs?: number;
  /** The reaction to the end of the time. Present together with `timeoutMs`. */
  onTimeout?: WorkflowTimeout;
}

export type WorkflowTimeout = "human_gate" | "fail" | "cancel_all";

/** A node. It runs one task, one workflow or one agent. An empty node only passes the token on. */
export interface WorkflowNode {
  /** Names the node in its workflow. */
  ref: string;
  name?: string;
  /** `library/id`, `library/id@version`, or `id` within the workflow's library. */
  task?: string;
  /** A workflow that runs as a sub-workflow, named as a task is. */
  workflow?: string;
  /** The id of an agent of the tenant. */
  agent?: string;
  /** The way of calling the agent; `delegate` when absent. */
  mode?: AgentMode;
  /** Time limit of the agent, in milliseconds. Default: 24 hours. Maximum: 30 days. The wait for a person does not count. */
  timeoutMs?: number;
  /** The members of the target's input. Default: the run's input. */
  inputMapping?: Mapping;
  /**
   * Writes of the node, by path: expressions that may also use `result`. Default: in a branch, the result is the
   * output of the branch. Outside branches the result is not written.
   */
  outputMapping?: Mapping;
  /** Resources that the node uses, by name. */
  resourceBindings?: Record<string, string>;
}

/** A way from one node to another. */
export interface WorkflowTransition {
  /** Names the transition in its workflow; `FROM-TO` when absent. */
  ref: string;
  /** The `ref` of a node. */
  from: string;
  /** The `ref` of a node. */
  to: string;
  /** 0 when absent. Transitions with the lowest number are tried first. If any of them fires, transitions with higher numbers do not fire. */
  priority: number;
  /** Decides whether the transition fires; it always does when absent. */
  condition?: string;
  /** Number of tokens that the transition makes; one when absent. */
  spawnCount?: number;
  /** Makes a token for each item of a list. */
  foreach?: WorkflowForeach;
  /** Makes each token a branch of this group. */
  siblingGroup?: string;
  /** Joins the branches of a group. */
  synchronization?: WorkflowSynchronization;
  loopConfig?: { maxIterations: number };
}

/** The list of a `foreach`, and the name of its item in the mappings of the target. */
export interface WorkflowForeach {
  collection: string;
  itemVar: string;
}

/** The number of branches that a fan-in waits for. */
export type SynchronizationStrategy = "any" | "all" | { mOfN: number };

/** A fan-in: the join of the branches of one fan-out. */
export interface WorkflowSynchronization {
  siblingGroup: string;
  strategy: SynchronizationStrategy;
  /** Time after the first arrival, in milliseconds; no limit when absent. */
  timeoutMs?: number;
  /** With `proceed_with_available`, a fan-in continues with the completed branches, even if no branch completed. */
  onTimeout: "fail" | "proceed_with_available";
  /** Failed branches that the fan-in accepts; any number when absent. */
  maxFailures?: number;
  merge?: WorkflowMerge;
}

/** Collects the outputs of branches. */
export interface WorkflowMerge {
  /** `_branch.output`, or a path below it. */
  source: string;
  /** A path below `state` or `output`. */
  target: string;
  strategy: MergeStrategy;
}

/** The strategies for merging branches, in the order of their `branchIndex`. */
export const MERGE_STRATEGIES = [
  "append",
  "collect",
  "merge_object",
  "keyed_by_branch",
  "last_wins",
] as const;
export type MergeStrategy = (typeof MERGE_STRATEGIES)[number];
