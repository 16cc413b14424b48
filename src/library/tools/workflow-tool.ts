/** Tools whose calls run a workflow: what all of them have, in code and posted. */
import type { ToolDefinition, ToolTarget, WorkflowTarget } from "../../protocol/definitions.ts";

/** Time limit of a call that runs a workflow, in milliseconds, unless the tool declares another. The wait for a person does not count. */
const DEFAULT_WORKFLOW_TIMEOUT_MS = 24 * 3_600_000;

/** The values of a tool over a workflow where its author gives none. */
export const WORKFLOW_DEFAULTS = {
  effect: "idempotent",
  timeoutMs: DEFAULT_WORKFLOW_TIMEOUT_MS,
} as const satisfies Partial<ToolDefinition>;

/** The error of a tool over a workflow that promises too much (FLOWTOOL-1). */
export const NEVER_PURE =
  "Must be `idempotent` or `once` for a tool that runs a workflow. `idempotent` is the usual one: a repeated call finds its run.";

/** Returns the workflow that a tool's calls run; `undefined` for other tools. */
export function workflowTarget(target: ToolTarget | undefined): WorkflowTarget | undefined {
  return target !== undefined && "workflow" in target ? target : undefined;
}
