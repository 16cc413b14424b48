/**
 * Runs that runs and conversations start: the envelopes between the caller and the coordinator of the run, with the schemas for both sides.
 * The caller is the coordinator of a node with a sub-workflow, or the conversation of a tool call.
 *
 * RUNCALL-1  The id of the run derives from the operation of the caller and its attempt. Only the actor with the operation can start the run. An
 *            envelope that arrives again starts no other run.
 */
import { z } from "zod";
import type { CallTrail } from "../shared/call-trail.ts";
import type { Result } from "../shared/errors.ts";
import type { Json, JsonObject } from "../shared/json.ts";
import { amountsSchema } from "./budget.ts";
import { type CallAddress, callAddressSchema } from "./call-address.ts";
import { resultExcerptSchema } from "./large-result.ts";
import type { PinnedWorkflow } from "./pinned-workflow.ts";
import type { RunOrigin } from "./run-origin.ts";
import { workflowResultSchema } from "./workflow-call.ts";
import type { RunError } from "./workflow-run.ts";

/** Asks a coordinator to start the run of an operation. */
export const RUN_START = "run.start";
/** Brings the end of that run to the actor that started it. */
export const RUN_ENDED = "run.ended";
/** Cancels that run. */
export const RUN_CANCEL = "run.cancel";
/** Reports to the caller of a run or of an agent that a wait for a person, or a rest, begins or ends. */
export const RUN_WAITS = "run.waits";
/** Brings the end of a run that has a part of a fan-out. Its result is read from that run. */
export const PART_ENDED = "part.ended";
/** Sends the progress of a part's branches, if the fan-in depends on it. */
export const PART_PROGRESS = "part.progress";
/** Requests the end of a part. The completed branches count. */
export const PART_CLOSE = "part.close";

/** Bytes of an output in an envelope, as JSON. */
export const MAX_CHILD_OUTPUT_BYTES = 640 * 1024;

/** Runs below one first run, over all its depths. */
export const MAX_TREE_RUNS = 10_000;

/** The body of `run.start` and of `part.close`. The coordinator reads the run's data from the caller. */
export const runStartSchema = callAddressSchema;

/** The usage of the run and all its descendants. Absent: no usage. */
const spent = amountsSchema.exactOptional();
/** A task of the run, or below it, has read untrusted content of a memory. */
const tainted = z.literal(true).exactOptional();

const succeeded = z.object({ output: z.json() });
const failed = z.object({
  error: z.object({ code: z.string().max(200), message: z.string().max(20_000) }),
});

/** The ends of a sub-workflow by RPC. */
export const subworkflowResultSchema = workflowResultSchema.omit({ spent: true });
export const subworkflowErrorSchema = z.strictObject({ ...callAddressSchema.shape, ...failed.shape });

export const runEndedSchema = callAddressSchema.extend({
  outcome: z.union([succeeded, failed]),
  /** The status of a run that did not complete. */
  status: z.enum(["failed", "cancelled", "timed_out"]).exactOptional(),
  /** The excerpt of an output that does not fit. The outcome is then an error, for callers that need the whole output. */
  large: resultExcerptSchema.exactOptional(),
  spent,
  tainted,
});

export type RunEndedBody = z.infer<typeof runEndedSchema>;

export interface TreeShare {
  /** Runs that may work below it at once, in all branches together. From 1. */
  runs: number;
  /** Maximum number of active tokens of this run before fan-outs wait. From 1. */
  tokens: number;
}

/** Runs below a first run that work at once, unless the application sets another number. */
export const MAX_WORKING_RUNS = 64;
/** Active tokens of a tree of runs, unless the application sets another number. */
export const MAX_ACTIVE_TOKENS = 100_000;
/** The share of the first run of a tree, unless the application sets another. */
export const TREE_SHARE: TreeShare = { runs: MAX_WORKING_RUNS, tokens: MAX_ACTIVE_TOKENS };

export const runCancelSchema = callAddressSchema.extend({ reason: z.string().max(2_000) });

export type RunCancelBody = z.infer<typeof runCancelSchema>;

const waitSchema = z.object({
  /** The work, or some work below it, waits for a person. */
  isHeld: z.boolean(),
  /** The run waits only, and uses no share of the parent run. Absent for runs that work, and for agents. */
  isAtRest: z.literal(true).exactOptional(),
  /** Orders the messages of one sender: the highest number counts. */
  seq: z.int().min(0),
});

export type Wait = z.infer<typeof waitSchema>;

export const runWaitsSchema = callAddressSchema.extend(waitSchema.shape);

export type RunWaitsBody = z.infer<typeof runWaitsSchema>;

/** Branches of a part that one transition starts, in order: one branch per item, or `count` branches. */
export type PartBranches = { transition: string } & ({ items: Json[] } | { count: number });

export interface RunPart {
  group: string;
  /** The `ref` of the node that starts the fan-out. */
  origin: string;
  /** The path of the token that starts it. */
  path: string;
  /** Iterations of transitions on the way of that token. */
  counts: Readonly<Record<string, number>>;
  /** The index of its first branch. */
  first: number;
  /** Branches of the whole fan-out. */
  total: number;
}

export interface PartStart extends RunPart {
  branches: PartBranches[];
  /** The members of `state` and of the `output` around that its nodes read. */
  state: JsonObject;
  output: JsonObject;
}

export interface PartResult {
  /** The indexes of the completed branches, ascending. */
  completed: number[];
  /** The values that the fan-in merges, one per completed branch. Empty if it merges no values. */
  outputs: Json[];
  failed: [index: number, error: RunError][];
  /** Milliseconds since the epoch. Absent before the first arrival. */
  firstArrivalAt?: number;
}

export const partEndedSchema = callAddressSchema.extend({ spent, tainted });

export type PartEndedBody = z.infer<typeof partEndedSchema>;

const count = z.int().min(0);

export const partProgressSchema = callAddressSchema.extend({
  completed: count,
  failed: count,
  /** Milliseconds since the epoch. */
  firstArrivalAt: count.exactOptional(),
});

export type PartProgressBody = z.infer<typeof partProgressSchema>;

export interface PartClosed {
  hasBegun: boolean;
}

/** The workflow, the input and the origin of a run that a node starts. */
export interface ChildRun extends CallTrail {
  projectId: string;
  startedBy: string;
  rootRunId: string;
  /** The agents that wait for the first run, if any. */
  path?: string[];
  /** The tool call that started the first run, if a tool call started it. */
  origin?: RunOrigin;
  workflow: PinnedWorkflow;
  input: JsonObject;
  /** Maximum number of branches before fan-outs are spread. Absent for the default. */
  width?: number;
  /** Its share in the tree; `TREE_SHARE` if absent. */
  share?: TreeShare;
  /** The part of a fan-out to start with. Absent: start with the first node. */
  part?: PartStart;
}

/** The RPC interface of a `Coordinator` for the coordinators of its sub-workflows. Only Workers with a binding reach it. */
export interface ChildRunApi {
  /** Returns the input of an attempt's run. `NOT_FOUND` if the attempt no longer waits for a run. */
  childRun(address: CallAddress): Promise<Result<ChildRun>>;
  /** Counts the run `id` before its start below this first run, at any depth. Idempotent. `BUDGET_EXCEEDED` beyond `MAX_TREE_RUNS`. */
  admitRun(id: string): Promise<Result<null>>;
  /** Returns the result of a part. `NOT_FOUND` if the run has no completed part with that operation. */
  partResult(address: CallAddress): Promise<Result<PartResult>>;
}
