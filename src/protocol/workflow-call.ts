/** Runs that tool calls start: the data of the run, and its end by RPC. Their envelopes are in `run-call.ts`. */
import { z } from "zod";
import type { CallTrail } from "../shared/call-trail.ts";
import type { Result } from "../shared/errors.ts";
import type { JsonObject } from "../shared/json.ts";
import { amountsSchema } from "./budget.ts";
import { type CallAddress, callAddressSchema } from "./call-address.ts";
import { toolErrorFields } from "./executor-api.ts";
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
  /** A run waits for the call, at any distance. */
  worksForRun?: true;
  origin: RunOrigin;
}

/** The RPC interface of a `Conversation` for the runs of its tool calls. Only Workers with a binding reach it. */
export interface RunCallerApi {
  /** Returns the data of the run of an attempt. `NOT_FOUND` if the attempt waits for no run. */
  calledRun(address: CallAddress): Promise<Result<CalledRun>>;
}

/** The amounts that the run has used. Default: 0. */
const spent = amountsSchema.exactOptional();

export const workflowResultSchema = z.strictObject({ ...callAddressSchema.shape, output: z.json(), spent });

export type WorkflowResult = z.infer<typeof workflowResultSchema>;

export const workflowErrorSchema = z.strictObject({
  ...callAddressSchema.shape,
  error: z.object(toolErrorFields),
  spent,
});

export type WorkflowError = z.infer<typeof workflowErrorSchema>;

/** The methods of a `Conversation` for ends of runs that do not arrive by envelope. Only Workers with a binding reach it. */
export interface WorkflowResultApi {
  /** Takes the output if the operation still waits for this attempt, and ignores it otherwise. `NOT_FOUND` for an unknown operation. */
  handleWorkflowResult(result: WorkflowResult): Promise<Result<null>>;
  /** As `handleWorkflowResult`, for a failure. */
  handleWorkflowError(error: WorkflowError): Promise<Result<null>>;
}
