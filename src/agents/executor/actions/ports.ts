/** The ports of actions, and the context of one run. */
import type { EmbeddingGateway } from "../../../model/embedding.ts";
import type { AdapterLookup } from "../../../model/format-adapter.ts";
import type { ModelGateway } from "../../../model/gateway.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { TaskModelUsage } from "../../../protocol/task-summary.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";

export interface ActionModels {
  /** Shared with conversations, so limits and breakers of hosts apply to both. */
  gateway: ModelGateway;
  adapters: AdapterLookup;
  embeddings: EmbeddingGateway;
  defaultProfile: ModelProfile;
}

export interface ModelRun {
  models: ActionModels;
  context: CallContext;
  /** Aborts on cancellation or timeout of the task. */
  signal: AbortSignal;
  clock: Pick<Clock, "now" | "timer">;
  /** The step budget of the task for texts and vectors. */
  meter: Meter;
  requests: ModelRequests;
}

export type RequestUsage = Omit<TaskModelUsage, "calls">;

/** Counts the requests of a task within its budget. */
export interface ModelRequests {
  /** Reports whether the budget covers another request with a usage of `most`. */
  hasRoom(most: RequestUsage): boolean;
  /**
   * Reserves `most` for a request until the returned function is called with the actual usage. Throws `ToolError` with `BUDGET_EXCEEDED` if
   * the budget is too small.
   */
  begin(most: RequestUsage): (used: RequestUsage) => void;
}
