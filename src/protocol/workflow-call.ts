/** Runs that tool calls start: the data of the run, and its end by RPC. Their envelopes are in `run-call.ts`. */
import { z } from "zod";
import type { Amounts } from "../model/spending.ts";
import type { CallTrail } from "../shared/call-trail.ts";
import type { Result } from "../shared/errors.ts";
import { isOperationId } from "../shared/identifiers.ts";
import type { Json, JsonObject } from "../shared/json.ts";
import { amountsSchema } from "./budget.ts";
import { TOOL_ERROR_CODES, type ToolErrorCode } from "./executor-api.ts";
import type { RunCallAddress } from "./run-call.ts";
import type { RunOrigin } from "./run-origin.ts";

/** The workflow, the input and the origin of a run that a tool call starts. */
export interface CalledRun extends CallTrail {
  /** `library/id@version`, as the conversation has pinned it. */
  workflow: string;
  input: JsonObject;
  projectId: string;
  /** The user who owns the run. */
  startedBy: string;
  /** The agents that wait for the run, in the order of their calls. */
  path: string[];
  /** The call that starts the run. */
  origin: RunOrigin;
}

/** The door of a `Conversation` for the runs of its tool calls. Only Workers with a binding reach it. */
export interface RunCallerApi {
  /** Returns the data of the run of an attempt. `NOT_FOUND` if the attempt waits for no run. */
  calledRun(address: RunCallAddress): Promise<Result<CalledRun>>;
}

/** The output of a workflow, by RPC. */
export interface WorkflowResult extends RunCallAddress {
  output: Json;
  /** The amounts that the run has used. Default: 0. */
  spent?: Amounts;
}

/** The failure of a workflow, by RPC. */
export interface WorkflowError extends RunCallAddress {
  error: { code: ToolErrorCode; message: string; retriable: boolean };
  /** The amounts that the run has used. Default: 0. */
  spent?: Amounts;
}

const address = {
  operationId: z.string().refine(isOperationId, "Must be the id of an operation."),
  attempt: z.int().min(1),
};

export const workflowResultSchema: z.ZodType<WorkflowResult> = z.strictObject({
  ...address,
  output: z.json(),
  spent: amountsSchema.exactOptional(),
});

export const workflowErrorSchema: z.ZodType<WorkflowError> = z.strictObject({
  ...address,
  error: z.object({ code: z.enum(TOOL_ERROR_CODES), message: z.string(), retriable: z.boolean() }),
  spent: amountsSchema.exactOptional(),
});

/** The door of a `Conversation` for ends of runs that do not come by envelope. Only Workers with a binding reach it. */
export interface WorkflowResultApi {
  /** Takes the output if the operation still waits for this attempt, and ignores it otherwise. `NOT_FOUND` for an unknown operation. */
  handleWorkflowResult(result: WorkflowResult): Promise<Result<null>>;
  /** As `handleWorkflowResult`, for a failure. */
  handleWorkflowError(error: WorkflowError): Promise<Result<null>>;
}
