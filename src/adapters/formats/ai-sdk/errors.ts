/**
 * What an AI SDK model throws, as a failure. Its errors are told by their shape, not their class: a bundle may hold
 * the class twice. Pure.
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

/** Errors of the AI SDK that say what is wrong by their name. */
const CATEGORY_BY_NAME: ReadonlyMap<string, ErrorCategory> = new Map([
  ["AI_LoadAPIKeyError", "auth"],
  ["AI_NoSuchModelError", "not_found"],
  ["AI_UnsupportedFunctionalityError", "validation"],
  ["AI_InvalidPromptError", "validation"],
  ["AI_InvalidArgumentError", "validation"],
]);

/** `now` is in milliseconds since the epoch: a wait may be given as a date. */
export function aiSdkFailure(error: unknown, now: number): ModelFailure {
  if (error instanceof ModelFailure) return error;
  const parsed = errorSchema.safeParse(typeof error === "string" ? { message: error } : error);
  if (!parsed.success) return new ModelFailure("transient", "The model failed without saying why.");
  const { message, statusCode: status, responseHeaders } = parsed.data;
  const wait = responseHeaders === undefined ? undefined : retryAfterMs(new Headers(responseHeaders), now);
  const requestId = aiSdkResponse(error, now)?.requestId;
  return new ModelFailure(categoryOf(parsed.data), clean(message) || "The model failed without saying why.", {
    ...defined({ status, requestId, retryAfterMs: wait }),
  });
}

/** The response that an error tells of; `undefined` where there was none. */
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
