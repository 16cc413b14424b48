/** The work of the nodes of a run. Pure. */
import { questionOf } from "../../../library/tasks/pin.ts";
import type { PinnedNodeTask } from "../../../protocol/pinned-workflow.ts";
import type { HumanAction } from "../../../protocol/task-definition.ts";
import type { RunStatus } from "../../../protocol/workflow-run.ts";
import { graphOf } from "./graph.ts";
import type { RunRecord } from "./record.ts";
import type { RunState } from "./state.ts";

/** The work of a node: a task in the Executor, a question to a person, a run of its own, or an agent. */
export type NodeWork =
  | { readonly kind: "task"; readonly task: PinnedNodeTask }
  | { readonly kind: "gate"; readonly question: HumanAction }
  | { readonly kind: "workflow" }
  | { readonly kind: "agent" };

/** Returns the work of a node; `undefined` where tokens pass through it. */
export function workOf({ workflow }: Pick<RunRecord, "workflow">, ref: string): NodeWork | undefined {
  if (Object.hasOwn(workflow.workflows, ref)) return { kind: "workflow" };
  const task = Object.hasOwn(workflow.tasks, ref) ? workflow.tasks[ref] : undefined;
  const question = questionOf(task?.task);
  if (question !== undefined) return { kind: "gate", question };
  if (task !== undefined) return { kind: "task", task };
  return graphOf(workflow.definition).calls.has(ref) ? { kind: "agent" } : undefined;
}

/** Returns the status that others see: a run that works on nothing itself waits for people, other runs or agents. */
export function shownStatus({ status, record, tokens }: RunState): RunStatus {
  const isWaiting = [...tokens.values()].every(
    ({ node, phase }) => phase.kind === "working" && workOf(record, node)?.kind !== "task",
  );
  return status === "running" && isWaiting ? "waiting" : status;
}
