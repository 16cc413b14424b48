/**
 * Turns responses, error bodies and exceptions into model errors.
 *
 * MERR-2  A message of a provider is redacted and at most 500 characters long.
 */
import { z } from "zod";
import { type ErrorCategory, isRetriable, type ModelError } from "../../model/error.ts";
import type { ProviderId } from "../../model/profile.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { parseJson } from "../../shared/json.ts";
import { redactSecrets } from "../../shared/redact.ts";
import { shorten } from "../../shared/text.ts";
import { durationMs } from "./durations.ts";

const MAX_MESSAGE = 500;

export type FailureDetails = Pick<ModelError, "status" | "requestId" | "retryAfterMs">;

/** Thrown inside the gateway, which turns it into an error delta with the provider's name. */
export class ModelFailure extends Error {
  override readonly name = "ModelFailure";
  readonly category: ErrorCategory;
  readonly details: FailureDetails;

  constructor(category: ErrorCategory, message: string, details: FailureDetails = {}) {
    super(message);
    this.category = category;
    this.details = details;
  }
}

export function modelError(
  provider: ProviderId,
  category: ErrorCategory,
  message: string,
  details: FailureDetails = {},
): ModelError {
  return { category, message, retriable: isRetriable(category), provider, ...details };
}

export function incompleteReply(provider: ProviderId): ModelError {
  return modelError(provider, "transient", "The reply ended before it was complete.");
}

/** Turns an exception of a model call into an error. If the call's signal has aborted, its reason is the cause. */
export function thrownError(thrown: unknown, provider: ProviderId, signal?: AbortSignal): ModelError {
  const error: unknown = signal?.aborted ? signal.reason : thrown;
  if (error instanceof ModelFailure)
    return modelError(provider, error.category, error.message, error.details);
  if (signal?.aborted)
    return nameOf(error) === "TimeoutError"
      ? modelError(provider, "timeout", "The model took too long to answer.")
      : modelError(provider, "canceled", "The model call was cancelled.");
  if (error instanceof DramatisError) return modelError(provider, "validation", error.message);
  // A defect: the stack stays in the log.
  console.error(error);
  return modelError(provider, "unknown", "The model call failed unexpectedly.");
}

function nameOf(reason: unknown): unknown {
  return typeof reason === "object" && reason !== null && "name" in reason ? reason.name : undefined;
}

const CATEGORY_BY_STATUS: Readonly<Partial<Record<number, ErrorCategory>>> = {
  400: "validation",
  401: "auth",
  402: "quota",
  403: "auth",
  404: "not_found",
  408: "timeout",
  // Another request holds a lock. The providers' own clients retry this, too.
  409: "transient",
  413: "validation",
  422: "validation",
  429: "rate_limit",
};

/** Returns the category of an HTTP status that is not a success. */
function categoryOfStatus(status: number): ErrorCategory {
  return CATEGORY_BY_STATUS[status] ?? (status >= 500 ? "transient" : "unknown");
}

/** Codes, types, statuses and reasons in the error bodies of providers, by category. */
const CODES: readonly (readonly [ErrorCategory, ...codes: string[]])[] = [
  ["quota", "insufficient_quota", "billing_hard_limit_reached", "billing_error"],
  ["rate_limit", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"],
  [
    "auth",
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "API_KEY_INVALID",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
  ],
  ["not_found", "model_not_found", "not_found_error", "NOT_FOUND"],
  [
    "validation",
    "context_length_exceeded",
    "invalid_request_error",
    "request_too_large",
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
  ],
  ["safety", "content_filter", "content_policy_violation"],
  ["timeout", "timeout", "timeout_error", "DEADLINE_EXCEEDED"],
  ["transient", "overloaded_error", "api_error", "server_error", "INTERNAL", "UNAVAILABLE"],
];

/** The content of an error body, with a redacted message. Without a known code it has no category. */
export type ProviderError = Partial<Pick<ModelError, "message" | "category" | "retryAfterMs">>;

const code = z.union([z.string(), z.number()]).nullish().catch(undefined);
const text = z.string().nullish().catch(undefined);
/** Google's details: why a key was refused, which quota is used up, how long to wait. */
const detail = z
  .object({
    reason: text,
    retryDelay: text,
    violations: z
      .array(z.object({ quotaId: text }))
      .nullish()
      .catch(undefined),
  })
  .catch({});
const errorObject = z.object({
  message: text,
  type: text,
  code,
  status: code,
  details: z.array(detail).nullish().catch(undefined),
});
const errorBody = z.object({
  error: z.union([errorObject, z.string()]).nullish().catch(undefined),
  errors: z.array(errorObject).nullish().catch(undefined),
  message: text,
  detail: text,
  code,
});

/** Reads an error body in the shapes of providers and compatible servers. Text that is not JSON becomes the message. */
export function readErrorBody(body: string): ProviderError {
  const value = parseJson(body);
  if (value === undefined) {
    const isPage = /^\s*</.test(body);
    return isPage || body.trim() === "" ? {} : { message: clean(body) };
  }
  const parsed = errorBody.safeParse(Array.isArray(value) ? value[0] : value);
  if (!parsed.success) return {};
  const { error, errors, message, detail } = parsed.data;
  if (typeof error === "string") return { message: clean(error) };
  const first = error ?? errors?.[0];
  const details = first?.details ?? [];
  const reported = first?.message ?? message ?? detail;
  const reasons = details.map(({ reason }) => reason);
  // The status precedes the code, because Google's code is only the HTTP status.
  const named = [...reasons, first?.status, first?.code, parsed.data.code, first?.type];
  const category = isSpent(reported, details) ? "quota" : named.map(categoryOfCode).find((found) => found);
  const wait = details
    .map(({ retryDelay }) => durationMs(retryDelay ?? ""))
    .find((found) => found !== undefined);
  return defined({ message: reported ? clean(reported) : undefined, category, retryAfterMs: wait });
}

/** Reports a used-up daily quota or an account without credit. Providers have no code for these. */
function isSpent(message: string | null | undefined, details: readonly z.infer<typeof detail>[]): boolean {
  const quotas = details.flatMap(({ violations }) => violations ?? []);
  return (
    quotas.some(({ quotaId }) => /PerDay/.test(quotaId ?? "")) ||
    /credit balance is too low/i.test(message ?? "")
  );
}

/** Returns the category of a response that is not a success, by its status and the code in its body. */
export function categoryOfResponse(status: number, { category }: ProviderError): ErrorCategory {
  const byStatus = categoryOfStatus(status);
  if (category === undefined || status < 400 || status >= 500 || status === 401) return byStatus;
  return MORE_PRECISE.has(category) ? category : byStatus;
}

/** Codes of these categories override the status: a used-up quota has the status of a rate limit, for example. */
const MORE_PRECISE: ReadonlySet<ErrorCategory> = new Set([
  "auth",
  "quota",
  "not_found",
  "rate_limit",
  "safety",
]);

/** Returns an error that was reported inside a stream; `transient` without a known code. */
export function inBandError(provider: ProviderId, value: unknown): ModelError {
  const {
    message = "The provider reported an error.",
    category = "transient",
    ...details
  } = readErrorBody(JSON.stringify({ error: value }));
  return modelError(provider, category, message, details);
}

function categoryOfCode(value: string | number | null | undefined): ErrorCategory | undefined {
  if (value === null || value === undefined) return undefined;
  const status = Number(value);
  if (Number.isInteger(status) && status >= 400 && status < 600) return categoryOfStatus(status);
  return CODES.find(([, ...codes]) => codes.includes(String(value)))?.[0];
}

/** Redacts and shortens a message of a provider (MERR-2). */
export function clean(message: string): string {
  return shorten(redactSecrets(message.toWellFormed()).replace(/\s+/g, " ").trim(), MAX_MESSAGE);
}
