/**
 * Runs that runs start: the envelopes between the coordinator of a node and that of its sub-workflow, with the schemas for both sides.
 *
 * RUNCALL-1  The id of the run that a node starts derives from the node's operation and its attempt. Only the run with the operation can
 *            start it, however often the envelope arrives.
 */
import { z } from "zod";
import type { Amounts } from "../model/spending.ts";
import type { Result } from "../shared/errors.ts";
import { isOperationId } from "../shared/identifiers.ts";
import type { Json, JsonObject } from "../shared/json.ts";
import { amountsSchema } from "./budget.ts";
import type { PinnedWorkflow } from "./pinned-workflow.ts";
import type { RunOrigin } from "./run-origin.ts";
import type { RunError } from "./workflow-run.ts";

/** Asks a coordinator to start the sub-workflow of a node. */
export const RUN_START = "run.start";
/** Brings the end of that run to the coordinator that started it. */
export const RUN_ENDED = "run.ended";
/** Cancels that run. */
export const RUN_CANCEL = "run.cancel";

/** Bytes of the output of a run that another run has started, as JSON. It fits into an envelope. */
export const MAX_CHILD_OUTPUT_BYTES = 640 * 1024;

/** Runs below one first run, over all its depths. */
export const MAX_TREE_RUNS = 10_000;

/** The operation of a node, and its attempt. */
export interface RunCallAddress {
  operationId: string;
  /** From 1. */
  attempt: number;
}

/** The body of `run.start`. What the run works with is read from the run that starts it. */
export type RunStartBody = RunCallAddress;

/** The body of `run.ended`. */
export interface RunEndedBody extends RunCallAddress {
  outcome: { output: Json } | { error: RunError };
  /** What the run has used, with all below it; absent for nothing. */
  spent?: Amounts;
}

/** The body of `run.cancel`. */
export interface RunCancelBody extends RunCallAddress {
  reason: string;
}

const address = {
  operationId: z.string().refine(isOperationId, "Must be the id of an operation."),
  attempt: z.int().min(1),
};

export const runStartSchema: z.ZodType<RunStartBody> = z.object(address);

export const runEndedSchema: z.ZodType<RunEndedBody> = z.object({
  ...address,
  outcome: z.union([
    z.object({ output: z.json() }),
    z.object({ error: z.object({ code: z.string().max(200), message: z.string().max(20_000) }) }),
  ]),
  spent: amountsSchema.exactOptional(),
});

export const runCancelSchema: z.ZodType<RunCancelBody> = z.object({
  ...address,
  reason: z.string().max(2_000),
});

/** The workflow, the input and the origin of a run that a node starts. */
export interface ChildRun {
  projectId: string;
  startedBy: string;
  /** The first run above. */
  rootRunId: string;
  /** The agents that wait for the first run; absent where none does. */
  path?: string[];
  /** The call of a tool that started the first run; absent where none did. */
  origin?: RunOrigin;
  workflow: PinnedWorkflow;
  input: JsonObject;
}

/** The door of a `Coordinator` for the coordinators of its sub-workflows. Only Workers with a binding reach it. */
export interface ChildRunApi {
  /** Returns what the run of an attempt works with. `NOT_FOUND` where the attempt waits for no run any more. */
  childRun(address: RunCallAddress): Promise<Result<ChildRun>>;
  /**
   * Counts a run that is about to start below this first run, whatever the depth. `BUDGET_EXCEEDED` beyond `MAX_TREE_RUNS`. A start that
   * arrives twice may count twice.
   */
  admitRun(): Promise<Result<null>>;
}
