/** A workflow with all that its nodes run, as a run keeps it. */
import type { Pin, RetryPolicy, ToolEffect } from "./definition-parts.ts";
import type { PinnedTask } from "./task-definition.ts";
import type { WorkflowDefinition } from "./workflow-definition.ts";

/** A workflow as a run keeps it: later versions of anything do not reach it. */
export interface PinnedWorkflow extends Pin {
  library: string;
  definition: WorkflowDefinition;
  /** The tasks of the nodes, by the `ref` of the node. Read it with `Object.hasOwn`: a node may be named `toString`. */
  tasks: Readonly<Record<string, PinnedNodeTask>>;
  /** The sub-workflows of the nodes, by the `ref` of the node. Nodes with the same sub-workflow share one object. */
  workflows: Readonly<Record<string, PinnedWorkflow>>;
}

export interface PinnedNodeTask {
  library: string;
  id: string;
  effect: ToolEffect;
  timeoutMs: number;
  retry?: RetryPolicy;
  /** The steps of the task; absent if it is a function. */
  task?: PinnedTask;
}
