/** The identity of a run, which never changes. */
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import type { JsonObject } from "../../../shared/json.ts";

export interface RunRecord {
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
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}
