/** The ports of actions, and what an action is given when it runs. */
import type { EmbeddingGateway } from "../../../model/embedding.ts";
import type { AdapterLookup } from "../../../model/format-adapter.ts";
import type { ModelGateway } from "../../../model/gateway.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { TaskModelUsage } from "../../../protocol/task-summary.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";

/** Calls models for actions. */
export interface ActionModels {
  /** Makes the attempts. The same gateway as that of conversations, so that limits and breakers of hosts hold for both. */
  gateway: ModelGateway;
  adapters: AdapterLookup;
  embeddings: EmbeddingGateway;
  /** The model of `llm` actions that name none. */
  defaultProfile: ModelProfile;
}

/** Where an action of a model runs. */
export interface ModelRun {
  models: ActionModels;
  context: CallContext;
  /** Aborts when the task is cancelled or its time is over. */
  signal: AbortSignal;
  clock: Pick<Clock, "now" | "timer">;
  /** The steps of the task: of rendering texts, and of vectors. */
  meter: Meter;
  requests: ModelRequests;
}

/** The tokens and the price of one request. */
export type RequestUsage = Omit<TaskModelUsage, "calls">;

/** Counts the requests of a task, within what it may use up. */
export interface ModelRequests {
  /** Reports whether another request that uses up `most` is allowed. */
  hasRoom(most: RequestUsage): boolean;
  /**
   * Begins a request with what it may use up, which counts until the returned function is called with what it has used up. Throws
   * `ToolError` with `BUDGET_EXCEEDED` where it is not allowed.
   */
  begin(most: RequestUsage): (used: RequestUsage) => void;
}
