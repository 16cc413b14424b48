/** Properties of all tools that run a workflow, both in code and posted by API. */
import type { ToolDefinition, ToolTarget, WorkflowTarget } from "../../protocol/definitions.ts";

/** Default time limit of a call that runs a workflow, in milliseconds. Time that the run waits for a person does not count. */
const DEFAULT_WORKFLOW_TIMEOUT_MS = 24 * 3_600_000;

export const WORKFLOW_DEFAULTS = {
  effect: "idempotent",
  timeoutMs: DEFAULT_WORKFLOW_TIMEOUT_MS,
} as const satisfies Partial<ToolDefinition>;

/** The error of a `pure` tool that runs a workflow (FLOWTOOL-1). */
export const NEVER_PURE =
  "Must be `idempotent` or `once` for a tool that runs a workflow. The default is `idempotent`, because a repeated call finds its run.";

/** Returns the workflow that a tool's calls run; `undefined` for other tools. */
export function workflowTarget(target: ToolTarget | undefined): WorkflowTarget | undefined {
  return target !== undefined && "workflow" in target ? target : undefined;
}
