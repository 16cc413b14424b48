/**
 * Classifies the errors that an AI SDK model throws. Their shape decides, not their class: a bundle may hold the class
 * twice. Pure.
 */
import { z } from "zod";
import type { ErrorCategory } from "../../../model/error.ts";
import type { ResponseInfo } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import { categoryOfResponse, clean, ModelFailure, readErrorBody } from "../../errors/model-errors.ts";
import { responseInfo, retryAfterMs } from "../../errors/response-info.ts";

const errorSchema = z.object({
  name: z.string().catch(""),
  message: z.string().catch(""),
  statusCode: z.number().int().optional().catch(undefined),
  isRetryable: z.boolean().optional().catch(undefined),
  responseHeaders: z.record(z.string(), z.string()).optional().catch(undefined),
  responseBody: z.string().catch(""),
});

/** Maps names of AI SDK errors to categories. */
const CATEGORY_BY_NAME: ReadonlyMap<string, ErrorCategory> = new Map([
  ["AI_LoadAPIKeyError", "auth"],
  ["AI_NoSuchModelError", "not_found"],
  ["AI_UnsupportedFunctionalityError", "validation"],
  ["AI_InvalidPromptError", "validation"],
  ["AI_InvalidArgumentError", "validation"],
]);

const NO_REASON = "The model failed without a reason.";

/** Classifies an error. `now` is in milliseconds since the epoch: a wait may be given as a date. */
export function aiSdkFailure(error: unknown, now: number): ModelFailure {
  if (error instanceof ModelFailure) return error;
  const parsed = errorSchema.safeParse(typeof error === "string" ? { message: error } : error);
  if (!parsed.success) return new ModelFailure("transient", NO_REASON);
  const { message, statusCode: status, responseHeaders } = parsed.data;
  const details = {
    status,
    requestId: aiSdkResponse(error, now)?.requestId,
    retryAfterMs: responseHeaders && retryAfterMs(new Headers(responseHeaders), now),
  };
  return new ModelFailure(categoryOf(parsed.data), clean(message) || NO_REASON, defined(details));
}

export function aiSdkResponse(error: unknown, now: number): ResponseInfo | undefined {
  const parsed = errorSchema.safeParse(error);
  if (!parsed.success || parsed.data.statusCode === undefined) return undefined;
  return responseInfo(parsed.data.statusCode, new Headers(parsed.data.responseHeaders), now);
}

function categoryOf({
  name,
  statusCode,
  isRetryable,
  responseBody,
}: z.infer<typeof errorSchema>): ErrorCategory {
  const named = CATEGORY_BY_NAME.get(name);
  if (named !== undefined) return named;
  if (statusCode === undefined) {
    if (isRetryable === undefined) return name === "TypeError" ? "unknown" : "transient";
    return isRetryable ? "network" : "unknown";
  }
  if (statusCode < 300) return "transient";
  const category = categoryOfResponse(statusCode, readErrorBody(responseBody));
  return category === "unknown" && isRetryable ? "transient" : category;
}
