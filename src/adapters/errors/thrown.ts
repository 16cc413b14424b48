/** What was thrown while a model was called, as the error that is told. */

import type { ModelError } from "../../model/error.ts";
import type { ProviderId } from "../../model/profile.ts";
import { DramatisError } from "../../shared/errors.ts";
import { ModelFailure, modelError } from "./model-errors.ts";

/** `signal` is that of the call: once it has aborted, its reason is why the call failed. */
export function thrownError(thrown: unknown, provider: ProviderId, signal: AbortSignal): ModelError {
  const error: unknown = signal.aborted ? signal.reason : thrown;
  if (error instanceof ModelFailure) {
    return modelError(provider, error.category, error.message, error.details);
  }
  if (signal.aborted) {
    return nameOf(error) === "TimeoutError"
      ? modelError(provider, "timeout", "The model took too long to answer.")
      : modelError(provider, "canceled", "The model call was cancelled.");
  }
  if (error instanceof DramatisError) return modelError(provider, "validation", error.message);
  // Nothing that anybody expects: logged here with its stack, told to nobody.
  console.error(error);
  return modelError(provider, "unknown", "The model call failed unexpectedly.");
}

function nameOf(reason: unknown): unknown {
  return typeof reason === "object" && reason !== null && "name" in reason ? reason.name : undefined;
}
