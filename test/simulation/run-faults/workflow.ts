/** The workflow of a simulated run: its nodes run tasks, ask people, or start work elsewhere. */
import type { PinnedNodeTask, PinnedWorkflow } from "../../../src/protocol/pinned-workflow.ts";
import type { WorkflowDefinition } from "../../../src/protocol/workflow-definition.ts";
import type { Random } from "../../../src/testing/random.ts";

/** Time limit for an answer at a gate, in milliseconds. */
export const GATE_MS = 5_000;

/** Returns a workflow with some nodes that ask people and other actors. It may have a time limit. */
export function pinned(shape: WorkflowDefinition, random: Random, task: PinnedNodeTask): PinnedWorkflow {
  const tasks: Record<string, PinnedNodeTask> = {};
  const workflows: Record<string, PinnedWorkflow> = {};
  const child = { library: "lib", id: "child", version: 1, hash: "", tasks: {}, workflows: {} };
  const nodes = shape.nodes.map((node): WorkflowDefinition["nodes"][number] => {
    const { task: own, ...rest } = node;
    if (own === undefined) return node;
    const kind = random.pick(["task", "task", "task", "gate", "workflow", "agent"] as const);
    switch (kind) {
      case "workflow":
        workflows[node.ref] = { ...child, definition: shape };
        return { ...rest, workflow: "lib/child" };
      case "agent":
        return { ...rest, agent: "helper", mode: "delegate" };
      case "gate":
        tasks[node.ref] = gate(random.chance(0.5) ? GATE_MS : undefined);
        return node;
      case "task":
        tasks[node.ref] = task;
        return node;
      default:
        return kind satisfies never;
    }
  });
  const limit = random.chance(0.25)
    ? {
        timeoutMs: random.int(500, 12_000),
        onTimeout: random.pick(["human_gate", "human_gate", "fail", "cancel_all"] as const),
      }
    : {};
  const joins = new Map<string, number | undefined>();
  const transitions = shape.transitions.map((one) => {
    if (one.synchronization === undefined) return one;
    const { siblingGroup } = one.synchronization;
    if (!joins.has(siblingGroup))
      joins.set(siblingGroup, random.chance(0.5) ? random.int(100, 3_000) : undefined);
    const timeoutMs = joins.get(siblingGroup);
    return timeoutMs === undefined ? one : { ...one, synchronization: { ...one.synchronization, timeoutMs } };
  });
  const definition = { ...shape, nodes, transitions, ...limit };
  return { library: "lib", id: "w", version: 1, hash: "", definition, tasks, workflows };
}

function gate(timeoutMs: number | undefined): PinnedNodeTask {
  const action = { kind: "human.input", prompt: "Well?", schema: { type: "object" } } as const;
  const step = { ref: "ask", action: { ...action, ...(timeoutMs !== undefined && { timeoutMs }) } };
  const task = { id: "gate", version: 1, hash: "", inputSchema: { type: "object" }, steps: [step] };
  return { library: "lib", id: "gate", effect: "pure", timeoutMs: 1_000, task };
}
