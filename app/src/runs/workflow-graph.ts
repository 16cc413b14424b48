/** The graph of a workflow as the console shows it. Pure. */
import type { WorkflowDefinition, WorkflowNode, WorkflowTransition } from "../../../src/client/index.ts";

/** The thing that a node runs. */
export type NodeKind = "task" | "workflow" | "agent" | "pass";

export function kindOf({ task, workflow, agent }: WorkflowNode): NodeKind {
  if (task !== undefined) return "task";
  if (workflow !== undefined) return "workflow";
  return agent === undefined ? "pass" : "agent";
}

/** Returns the name of the task, workflow or agent that the node runs. */
export function ownerText({ task, workflow, agent }: WorkflowNode): string {
  return task ?? workflow ?? agent ?? "Tokens pass through";
}

/** Returns the nodes by their distance from the start, as tokens reach them. */
export function readingOrder({ initialNode, nodes, transitions }: WorkflowDefinition): WorkflowNode[] {
  const byRef = new Map(nodes.map((node) => [node.ref, node]));
  const targets = Map.groupBy(transitions, ({ from }) => from);
  const order = new Set([initialNode]);
  // The loop also visits the elements that it adds to the set.
  for (const ref of order) for (const { to } of targets.get(ref) ?? []) order.add(to);
  return [...order].flatMap((ref) => byRef.get(ref) ?? []);
}

const MAX_CONDITION = 28;

/** Returns the condition and the effects of a transition in a few words; empty for a plain transition. */
export function transitionText({
  condition,
  foreach,
  spawnCount,
  synchronization,
  loopConfig,
}: WorkflowTransition): string {
  const parts = [
    condition === undefined ? "" : `if ${shortened(condition)}`,
    foreach === undefined ? "" : `each ${foreach.itemVar}`,
    spawnCount === undefined || spawnCount === 1 ? "" : `× ${spawnCount}`,
    synchronization === undefined ? "" : strategyText(synchronization.strategy),
    loopConfig === undefined ? "" : `at most ${loopConfig.maxIterations} times`,
  ];
  return parts.filter((part) => part !== "").join(" · ");
}

function strategyText(strategy: NonNullable<WorkflowTransition["synchronization"]>["strategy"]): string {
  return typeof strategy === "object" ? `when ${strategy.mOfN} arrived` : `when ${strategy} arrived`;
}

function shortened(text: string): string {
  return text.length <= MAX_CONDITION ? text : `${text.slice(0, MAX_CONDITION - 1)}…`;
}
