/** The identity of a run, which never changes. */
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import type { RunPart, TreeShare } from "../../../protocol/run-call.ts";
import type { RunOrigin } from "../../../protocol/run-origin.ts";
import { workspaceOf } from "../../../protocol/workspace.ts";
import type { CallTrail } from "../../../shared/call-trail.ts";
import { type DramatisError, notFound } from "../../../shared/errors.ts";
import type { WorkspaceLink } from "../../../shared/identifiers.ts";
import type { JsonObject } from "../../../shared/json.ts";

export interface RunParent {
  readonly runId: string;
  readonly rootRunId: string;
  readonly operationId: string;
  readonly attempt: number;
}

export interface RunRecord extends CallTrail {
  readonly id: string;
  readonly tenant: string;
  readonly projectId: string;
  /** 19 characters, the prefix of the operation ids of the run. */
  readonly stem: string;
  /** The name that a principal gave it. */
  readonly name?: string;
  readonly workflow: PinnedWorkflow;
  /** As its schema accepted it, with defaults. */
  readonly input: JsonObject;
  readonly request: string;
  /** The principal that started the run. */
  readonly startedBy: string;
  /** The node that started the run; absent if a principal started it. */
  readonly parent?: RunParent;
  /** The agents that wait for the run, or for one of its parent runs; absent without such agents. */
  readonly path?: readonly string[];
  /** The tool call that started the run or the root run; absent without a tool call. */
  readonly origin?: RunOrigin;
  /** A fan-out with more branches is spread over sub-runs; `FAN_OUT_WIDTH` when absent. */
  readonly width?: number;
  /** The share of the run in its tree; `TREE_SHARE` if absent. */
  readonly share?: TreeShare;
  /** The branches of the parent run that this run has; absent if it has the whole workflow. */
  readonly part?: RunPart;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** The actor that waits for a run: the parent run, or the conversation of a tool call or a hook. */
export interface RunCaller {
  readonly kind: "coordinator" | "conversation";
  readonly id: string;
  readonly operationId: string;
  readonly attempt: number;
}

/** Returns the actor that waits for a run; `undefined` if a principal has started it. */
export function runCaller({ parent, origin }: Pick<RunRecord, "parent" | "origin">): RunCaller | undefined {
  if (parent !== undefined) {
    const { runId: id, operationId, attempt } = parent;
    return { kind: "coordinator", id, operationId, attempt };
  }
  if (origin === undefined) return undefined;
  const { conversationId: id, operationId, attempt } = origin;
  return { kind: "conversation", id, operationId, attempt };
}

/** Returns the workspace of a run: all runs of a tree share one. A tool call's run begins at the branch of the caller's workspace. */
export function runWorkspace({
  id,
  parent,
  origin,
}: Pick<RunRecord, "id" | "parent" | "origin">): WorkspaceLink & { id: string } {
  return {
    id: workspaceOf({ runId: parent?.rootRunId ?? id }).id,
    ...(origin && { from: origin.workspace ?? workspaceOf({ conversationId: origin.conversationId }).id }),
  };
}

/** Returns the error for an unknown run. A run of another user gets the same error (RUNACCESS-1). */
export function unknownRun(): DramatisError {
  return notFound("Run not found. Check the id and your access to the run.");
}
