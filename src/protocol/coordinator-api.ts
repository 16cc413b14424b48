/** The RPC interface and the views of `Coordinator`, the actor of a run. */
import { z } from "zod";
import { trailFields } from "../shared/call-trail.ts";
import { BLANK_RULE, isBlank } from "../shared/content.ts";
import type { Result } from "../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import { RUN_ID, type WorkspaceLink } from "../shared/identifiers.ts";
import { isJsonObject, type Json, UNICODE_RULE } from "../shared/json.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import { locationFields } from "./location-policy.ts";
import type { PinnedWorkflow } from "./pinned-workflow.ts";
import type { StopOptions } from "./requests.ts";
import { runOriginSchema } from "./run-origin.ts";
import type { ActiveToken, RunEntryView, RunView, RunWorkflow } from "./run-schemas.ts";
import type { TracePart } from "./trace.ts";

const runIdSchema = z.string().regex(RUN_ID, "Must be `run_` and a ULID, as `newRunId()` returns.");

/** The members of a request that starts a run, without its id. */
export const startFields = {
  workflow: z.union([
    z.string().min(1).max(200),
    z.strictObject({
      library: definitionIdSchema,
      id: definitionIdSchema,
      version: z.int().min(1).exactOptional(),
    }),
  ]),
  input: z
    .record(z.string(), z.json())
    .exactOptional()
    .describe("As the workflow's `inputSchema` takes it. Default: `{}`."),
  name: z
    .string()
    .max(120)
    .refine((name) => !isBlank(name), BLANK_RULE)
    .refine((name) => name.isWellFormed(), UNICODE_RULE)
    .meta({
      minLength: 1,
      description: "The name of the run in lists. Default: the name of its workflow.",
      example: "Summaries of March",
    })
    .exactOptional(),
  /** `default` when absent. */
  projectId: definitionIdSchema.exactOptional(),
  idempotencyKey: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe("Repeating the request with this key and the same content answers the same run."),
  correlationId: trailFields.correlationId.describe(
    "The id that the run shares with all work that follows from it: sub-runs, agents and tasks. Default: the id of the run.",
  ),
};

export const startRunBody = z.strictObject({ ...startFields, ...locationFields });

export type NewRun = z.infer<typeof startRunBody>;

/** A request that starts a run by RPC. */
export const startRun = z.strictObject({
  /** The id of the run. It locates the run's actor. */
  id: runIdSchema,
  ...startFields,
  /** The place of the caller in its trace, as W3C Trace Context has it. An invalid place counts as absent. */
  traceparent: z.string().exactOptional(),
  /** The agents that wait for the run, from the first. The run's nodes must not ask them. */
  path: z.array(agentIdSchema).max(100).exactOptional(),
  /** The tool call that starts the run. Absent if a principal or a trigger starts it (INVITE-1). */
  origin: runOriginSchema.exactOptional(),
  /**
   * The workflow with all its dependencies, as the registry has checked it, if the caller pinned it. Otherwise `workflow` is resolved. Only
   * Workers with a binding send it.
   */
  pinned: z.custom<PinnedWorkflow>(isPinned, "A workflow as it was pinned").exactOptional(),
});

function isPinned(value: unknown): boolean {
  return isJsonObject(value) && [value.definition, value.tasks, value.workflows].every(isJsonObject);
}

export type StartRun = z.infer<typeof startRun>;

export const retryRun = z.strictObject({
  seq: z
    .int()
    .min(0)
    .exactOptional()
    .describe(
      "The `seq` of the failed run as you saw it. If the run has continued since, the retry is refused.",
    ),
  repeatOnce: z
    .boolean()
    .exactOptional()
    .describe("Repeats the nodes in `retry.repeatsOnce`. Their effects may happen twice."),
});

export type RetryRun = z.infer<typeof retryRun>;

/** The body of `answerGate`. */
export const gateAnswer = z.strictObject({ answer: z.json().describe("JSON.") });

export type ActiveStatus = ActiveToken["status"];

export const followRun = z.strictObject({
  /** The `seq` of the last entry that the reader has; all entries when absent. */
  from: z.int().min(0).exactOptional(),
});

export type FollowRun = z.infer<typeof followRun>;

export interface CoordinatorApi {
  /**
   * Starts the run. Throws `NOT_FOUND` for a workflow that does not exist, `INVALID_INPUT` for an input that its schema does not accept,
   * `IDEMPOTENCY_CONFLICT` for another request with the same key. Resolves when the run is durable.
   */
  start(principal: Principal, input: StartRun): Promise<Result<RunView>>;
  status(principal: Principal): Promise<Result<RunView>>;
  /** Cancels the run. `CONFLICT` if the run ended otherwise. Repeating it is a no-op. */
  cancel(principal: Principal, options?: StopOptions): Promise<Result<RunView>>;
  /**
   * Retries a failed run: restarts tokens that failed or that a failure cancelled. Completed tokens are not repeated.
   * `CONFLICT` if the run has not failed, has no token to restart, or has reported its failure to another run or a
   * conversation. `OUTCOME_UNKNOWN` if an effect may happen twice and `repeatOnce` is not `true`.
   */
  retryRun(principal: Principal, options?: RetryRun): Promise<Result<RunView>>;
  /**
   * Answers a gate. Repeating the answer is a no-op. Errors: `NOT_FOUND` for an unknown operation.
   * `PERMISSION_DENIED` if the rule excludes the reader. `CONFLICT` for another answer, or if the gate no longer
   * waits. `INVALID_INPUT` if the answer does not fit.
   */
  submitHumanInput(principal: Principal, operationId: string, answer: Json): Promise<Result<RunView>>;
  /** Reports whether a gate has this answer. Fails as `submitHumanInput`. Takes no answer, but commits an expiry that is due. */
  hasHumanInput(principal: Principal, operationId: string, answer: Json): Promise<Result<boolean>>;
  /** Returns a page of the journal, in order. */
  journal(principal: Principal, options?: PageOptions): Promise<Result<Page<RunEntryView>>>;
  /** Returns the part of the run in its trace. */
  traceRun(principal: Principal): Promise<Result<TracePart>>;
  /** Returns the workflow that the run works by. */
  workflow(principal: Principal): Promise<Result<RunWorkflow>>;
  /** Returns the workspace of the run, and its project. */
  workspace(principal: Principal): Promise<Result<WorkspaceLink & { id: string; project: string }>>;
  /**
   * Streams the journal entries after `from`, and new entries as they arrive, as server-sent events of `RunEvent`.
   * Returns `null` if the run is over and has no further entries. Throws `RATE_LIMITED` if too many readers follow
   * the run.
   */
  follow(principal: Principal, options?: FollowRun): Promise<Result<ReadableStream<Uint8Array> | null>>;
  /** Waits until the run is over, at most `timeoutMs` milliseconds. Returns the current run. */
  finished(principal: Principal, timeoutMs: number): Promise<Result<RunView>>;
}
