/** The work of the nodes of a run. Pure. */
import { questionOf } from "../../../library/tasks/pin.ts";
import type { PinnedNodeTask } from "../../../protocol/pinned-workflow.ts";
import type { HumanAction } from "../../../protocol/task-definition.ts";
import type { RunStatus } from "../../../protocol/workflow-run.ts";
import { graphOf } from "./graph.ts";
import type { RunRecord } from "./record.ts";
import type { RunState, Token } from "./state.ts";

/** The work of a token: a task in the Executor, a question to a person, a run of its own, or an agent. */
export type NodeWork =
  | { readonly kind: "task"; readonly task: PinnedNodeTask }
  | { readonly kind: "gate"; readonly question: HumanAction }
  | { readonly kind: "workflow" }
  /** A run of its own, with a part of a fan-out. */
  | { readonly kind: "part" }
  | { readonly kind: "agent" };

export function workOf(
  { workflow }: Pick<RunRecord, "workflow">,
  { node: ref, part }: Pick<Token, "node" | "part">,
): NodeWork | undefined {
  if (part === true) return { kind: "part" };
  if (Object.hasOwn(workflow.workflows, ref)) return { kind: "workflow" };
  const task = Object.hasOwn(workflow.tasks, ref) ? workflow.tasks[ref] : undefined;
  const question = questionOf(task?.task);
  if (question !== undefined) return { kind: "gate", question };
  if (task !== undefined) return { kind: "task", task };
  return graphOf(workflow.definition).calls.has(ref) ? { kind: "agent" } : undefined;
}

/** Returns the status for readers. A run without own active work is shown as waiting for people, other runs or agents. */
export function shownStatus({ status, record, tokens }: RunState): RunStatus {
  const isWaiting = [...tokens.values()].every(
    (token) => token.phase.kind === "working" && !isWorking(workOf(record, token)),
  );
  return status === "running" && isWaiting ? "waiting" : status;
}

function isWorking(work: NodeWork | undefined): boolean {
  return work?.kind === "task" || work?.kind === "part";
}
