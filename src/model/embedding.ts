/** Embeddings: texts as vectors of numbers. */
import type { CallContext } from "../shared/identifiers.ts";
import type { ModelError } from "./error.ts";
import type { ModelProfile } from "./profile.ts";
import type { TokenUsage } from "./usage.ts";

/** Texts that one request turns into vectors. */
export const MAX_TEXTS_OF_REQUEST = 64;

export interface EmbeddingRequest {
  profile: ModelProfile;
  /** From one text to `MAX_TEXTS_OF_REQUEST`. */
  texts: readonly string[];
  /** The caller, for correlation. It reaches no provider. */
  context: CallContext;
}

/** The vectors of the texts, in their order. */
export interface Embeddings {
  vectors: number[][];
  /** The name of the model, as its provider gives it. */
  model: string;
  usage?: TokenUsage;
}

export type EmbeddingOutcome = { ok: true; embeddings: Embeddings } | { ok: false; error: ModelError };

/** Turns texts into vectors. */
export interface EmbeddingGateway {
  /**
   * Makes one attempt. The caller owns retries. Never throws. An abort gives the category `canceled`, or `timeout` if the
   * signal's reason is a `TimeoutError`.
   */
  embed(request: EmbeddingRequest, signal: AbortSignal): Promise<EmbeddingOutcome>;
}
