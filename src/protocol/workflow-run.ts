/** Runs of workflows, as callers see them. */
import type { Json } from "../shared/json.ts";

/** The state of a run. A run is `waiting` if all its work waits for a person, a timer or other actors. */
export const RUN_STATUSES = ["running", "waiting", "completed", "failed", "timed_out", "cancelled"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** The failure of a run, or of a node in it. */
export interface RunError {
  code: string;
  message: string;
}

/** The types of the entries in the journal of a run. `node` and `token` of an entry name its place. */
export const RUN_ENTRY_TYPES = [
  "workflow.started",
  "workflow.recovered",
  "workflow.retried",
  "workflow.completed",
  "workflow.failed",
  "workflow.cancelled",
  "workflow.timed_out",
  "token.created",
  "token.completed",
  "token.failed",
  "token.cancelled",
  "token.waiting",
  "task.dispatched",
  "task.retried",
  "task.completed",
  "task.failed",
  "task.lost",
  "policy.denied",
  "work.held",
  "work.released",
  "run.rested",
  "gate.opened",
  "gate.answered",
  "gate.expired",
  "transition.fired",
  "loop_limit_reached",
  "fan_out.started",
  "part.progress",
  "fan_in.completed",
  "branches.merged",
  "sync.timeout",
  "sync.failed",
  "context.updated",
  "usage.counted",
] as const;
export type RunEntryType = (typeof RUN_ENTRY_TYPES)[number];

export interface RunEntry {
  type: RunEntryType;
  /** The number of the token. */
  token?: number;
  /** The `ref` of the node. */
  node?: string;
  data?: Json;
}
