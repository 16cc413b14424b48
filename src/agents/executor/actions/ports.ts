/** The ports of actions, and what an action is given when it runs. */
import type { EmbeddingGateway } from "../../../model/embedding.ts";
import type { AdapterLookup } from "../../../model/format-adapter.ts";
import type { ModelGateway } from "../../../model/gateway.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { Clock } from "../../../ports/clock.ts";
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
  /** Milliseconds since the epoch: no pause begins that would last until then. */
  deadline?: number;
  /** The steps of the task: of rendering texts, and of vectors. */
  meter: Meter;
  /** Is told after each attempt what the call has used up so far, for a call that is cut off in a pause. */
  used?(usage: ModelUsage): void;
}

/** The tokens of an action's calls, failed attempts included. */
export interface ModelUsage {
  input: number;
  output: number;
  /** US dollars; absent if the profile has no prices. */
  costUsd?: number;
}
