/** The identity of a run, which never changes. */
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import type { RunPart, TreeRoom } from "../../../protocol/run-call.ts";
import type { RunOrigin } from "../../../protocol/run-origin.ts";
import type { CallTrail } from "../../../shared/call-trail.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";

/** The operation of a node that started a run. */
export interface RunParent {
  readonly runId: string;
  /** The first run above. */
  readonly rootRunId: string;
  readonly operationId: string;
  readonly attempt: number;
}

export interface RunRecord extends CallTrail {
  readonly id: string;
  readonly tenant: string;
  readonly projectId: string;
  /** 19 characters from which the ids of the run's operations are made. */
  readonly stem: string;
  readonly workflow: PinnedWorkflow;
  /** As its schema accepted it, with defaults. */
  readonly input: JsonObject;
  /** The hash of the request that started the run. */
  readonly request: string;
  /** The subject that started the run. */
  readonly startedBy: string;
  /** The node that started it; absent where a principal did. */
  readonly parent?: RunParent;
  /** The agents that wait for the run, or for one above it; absent where none does. */
  readonly path?: readonly string[];
  /** The call of a tool that started the run, or the first one above it; absent where none did. */
  readonly origin?: RunOrigin;
  /** Branches above which a fan-out is spread over runs of its own; `FAN_OUT_WIDTH` when absent. */
  readonly width?: number;
  /** Its share of the room of its tree; `TREE_ROOM` when absent. */
  readonly room?: TreeRoom;
  /** The branches of the run above that this run has; absent where it has the whole workflow. */
  readonly part?: RunPart;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** The actor that waits for a run: the run above, or the conversation of a tool call or a hook. */
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

/** Returns the error for a run that does not exist, and for one that belongs to others (RUNDOOR-1). */
export function unknownRun(): DramatisError {
  return new DramatisError(
    "NOT_FOUND",
    "There is no such run. What belongs to others is answered as not found.",
  );
}
