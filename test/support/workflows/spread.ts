/** Runs of a workflow with one fan-out, which is spread above a width. */
import type { RunRecord } from "../../../src/agents/coordinator/core/record.ts";
import { workflowSchema } from "../../../src/library/workflows/workflow-schema.ts";
import type { WorkflowDefinition } from "../../../src/protocol/workflow-definition.ts";
import type { JsonObject } from "../../../src/shared/json.ts";
import { Random } from "../../../src/testing/random.ts";
import { PlayedTree, type TreeOptions } from "./tree.ts";

const PINNED = { library: "lib", id: "task", effect: "pure", timeoutMs: 60_000 } as const;

/** Returns the record of a run that has at most `width` branches of a fan-out itself. */
export function recordOf(
  definition: WorkflowDefinition,
  input: JsonObject,
  width: number,
): Omit<RunRecord, "createdAt"> {
  const refs = definition.nodes.flatMap(({ ref, task }) => (task === undefined ? [] : [ref]));
  const tasks = Object.fromEntries(refs.map((ref) => [ref, PINNED]));
  return {
    ...{ id: "run_01", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" },
    workflow: { library: "lib", id: "w", version: 1, hash: "", definition, tasks, workflows: {} },
    ...{ input, startedBy: "ada", request: "", width },
  };
}

/** Returns a workflow with a task for each item: `null` leaves its branches unjoined. */
export const each = (effects: object = {}, synchronization: object | null = {}) =>
  workflowSchema.parse({
    inputSchema: { type: "object" },
    contextSchema: { type: "object", properties: { all: {}, other: {}, joined: {} } },
    initialNode: "start",
    nodes: [
      { ref: "start" },
      { ref: "work", task: "lib/task", inputMapping: { item: "item" }, ...effects },
      { ref: "end", outputMapping: { "state.joined": "fanIn" } },
    ],
    transitions: [
      {
        ...{ ref: "each", from: "start", to: "work", siblingGroup: "g" },
        foreach: { collection: "input.items", itemVar: "item" },
      },
      ...(synchronization === null
        ? []
        : [
            {
              ...{ ref: "join", from: "work", to: "end" },
              synchronization: {
                ...{ siblingGroup: "g", strategy: "all", ...synchronization },
                merge: { source: "_branch.output", target: "state.all", strategy: "collect" },
              },
            },
          ]),
    ],
    outputMapping: { joined: "state.joined", all: "state.all" },
  });

export const played = (
  definition: WorkflowDefinition,
  input: JsonObject,
  width: number,
  outcome: TreeOptions["outcome"] = (_, path) => ({ output: path }),
) => new PlayedTree({ record: recordOf(definition, input, width), outcome, random: new Random(1) });

export const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
