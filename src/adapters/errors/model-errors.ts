/**
 * Failures of model calls as data: which class a failure belongs to, and whether trying again can help.
 *
 * MERR-1  `rate_limit`, `timeout`, `transient` and `network` are retriable; nothing else is.
 * MERR-2  A message taken from a provider is redacted and at most 500 characters long.
 */

import { z } from "zod";
import type { ErrorCategory, ModelError } from "../../model/error.ts";
import type { ProviderId } from "../../model/profile.ts";
import { defined } from "../../shared/defined.ts";
import { redactSecrets } from "../../shared/redact.ts";
import { shorten } from "../../shared/text.ts";
import { durationMs } from "./durations.ts";

const RETRIABLE: ReadonlySet<ErrorCategory> = new Set(["rate_limit", "timeout", "transient", "network"]);

const MAX_MESSAGE = 500;

/** What else is known of a failure. */
export interface FailureDetails {
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  /** Milliseconds. */
  retryAfterMs?: number;
}

/** A failure inside the gateway on its way to becoming an error delta; the gateway adds the provider. */
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

/** Whether a failure of this class may pass by itself (MERR-1). */
export function isRetriable(category: ErrorCategory): boolean {
  return RETRIABLE.has(category);
}

export function modelError(
  provider: ProviderId,
  category: ErrorCategory,
  message: string,
  details: FailureDetails = {},
): ModelError {
  return { category, message, retriable: isRetriable(category), provider, ...details };
}

/** The category of an HTTP status that is not a success. */
function categoryOfStatus(status: number): ErrorCategory {
  if (status >= 500) return "transient";
  switch (status) {
    case 401:
    case 403:
      return "auth";
    case 402:
      return "quota";
    case 404:
      return "not_found";
    case 400:
    case 413:
    case 422:
      return "validation";
    case 408:
      return "timeout";
    // A lock that another request holds: the providers' own clients try again, too.
    case 409:
      return "transient";
    case 429:
      return "rate_limit";
    default:
      return "unknown";
  }
}

/** Codes, types, statuses and reasons that providers write into their error bodies. */
const CATEGORY_BY_CODE: ReadonlyMap<string, ErrorCategory> = new Map([
  ["insufficient_quota", "quota"],
  ["billing_hard_limit_reached", "quota"],
  ["billing_error", "quota"],
  ["rate_limit_exceeded", "rate_limit"],
  ["rate_limit_error", "rate_limit"],
  ["RESOURCE_EXHAUSTED", "rate_limit"],
  ["invalid_api_key", "auth"],
  ["authentication_error", "auth"],
  ["permission_error", "auth"],
  ["API_KEY_INVALID", "auth"],
  ["UNAUTHENTICATED", "auth"],
  ["PERMISSION_DENIED", "auth"],
  ["model_not_found", "not_found"],
  ["not_found_error", "not_found"],
  ["NOT_FOUND", "not_found"],
  ["context_length_exceeded", "validation"],
  ["invalid_request_error", "validation"],
  ["request_too_large", "validation"],
  ["INVALID_ARGUMENT", "validation"],
  ["FAILED_PRECONDITION", "validation"],
  ["content_filter", "safety"],
  ["content_policy_violation", "safety"],
  ["timeout", "timeout"],
  ["timeout_error", "timeout"],
  ["DEADLINE_EXCEEDED", "timeout"],
  ["overloaded_error", "transient"],
  ["api_error", "transient"],
  ["server_error", "transient"],
  ["INTERNAL", "transient"],
  ["UNAVAILABLE", "transient"],
]);

/** What an error body says. */
export interface ProviderError {
  /** Redacted and bounded. */
  message?: string;
  /** The class its code names, if it names one. */
  category?: ErrorCategory;
  /** Milliseconds it asks to wait. */
  retryAfterMs?: number;
}

const code = z.union([z.string(), z.number()]).nullish().catch(undefined);
const text = z.string().nullish().catch(undefined);
/** Google's: why a key was refused, which quota is used up, how long to wait. */
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

/** Reads an error body in the shapes that providers and compatible servers use; text that is not JSON is its own message. */
export function readErrorBody(body: string): ProviderError {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    const isPage = /^\s*</.test(body);
    return isPage || body.trim() === "" ? {} : { message: clean(body) };
  }
  const parsed = errorBody.safeParse(Array.isArray(value) ? value[0] : value);
  if (!parsed.success) return {};
  const { error, errors, message, detail } = parsed.data;
  if (typeof error === "string") return { message: clean(error) };
  const first = error ?? errors?.[0];
  const details = first?.details ?? [];
  const said = first?.message ?? message ?? detail;
  const reasons = details.map(({ reason }) => reason);
  // A status stands before a code: Google's code is only the status of the response.
  const named = [...reasons, first?.status, first?.code, parsed.data.code, first?.type];
  const category = isSpent(said, details) ? "quota" : named.map(categoryOfCode).find((found) => found);
  const wait = details
    .map(({ retryDelay }) => durationMs(retryDelay ?? ""))
    .find((found) => found !== undefined);
  return {
    ...(said ? { message: clean(said) } : {}),
    ...defined({ category, retryAfterMs: wait }),
  };
}

/** Whether waiting for seconds cannot help: a quota of the day, or an account without credit, that no code names. */
function isSpent(message: string | null | undefined, details: readonly z.infer<typeof detail>[]): boolean {
  const quotas = details.flatMap(({ violations }) => violations ?? []);
  return (
    quotas.some(({ quotaId }) => /PerDay/.test(quotaId ?? "")) ||
    /credit balance is too low/i.test(message ?? "")
  );
}

/** The class of a response that is not a success: by its status, and by its body where that knows better. */
export function categoryOfResponse(status: number, said: ProviderError): ErrorCategory {
  const byStatus = categoryOfStatus(status);
  const { category } = said;
  if (category === undefined || status < 400 || status >= 500 || status === 401) return byStatus;
  // A used-up quota comes with the status of a rate limit, a refused key with that of a bad request.
  return KNOWN_BETTER.has(category) ? category : byStatus;
}

const KNOWN_BETTER: ReadonlySet<ErrorCategory> = new Set([
  "auth",
  "quota",
  "not_found",
  "rate_limit",
  "safety",
]);

/** An error that came inside a stream whose status was already a success. Without a known code it is the server's fault. */
export function inBandError(provider: ProviderId, value: unknown): ModelError {
  const { message, category, retryAfterMs } = readErrorBody(JSON.stringify({ error: value }));
  const details = retryAfterMs === undefined ? {} : { retryAfterMs };
  return modelError(provider, category ?? "transient", message ?? "The provider reported an error.", details);
}

function categoryOfCode(value: string | number | null | undefined): ErrorCategory | undefined {
  if (value === null || value === undefined) return undefined;
  const status = Number(value);
  if (Number.isInteger(status) && status >= 400 && status < 600) return categoryOfStatus(status);
  return CATEGORY_BY_CODE.get(String(value));
}

/** What a provider said, fit to be told (MERR-2). */
export function clean(message: string): string {
  return shorten(redactSecrets(message.toWellFormed()).replace(/\s+/g, " ").trim(), MAX_MESSAGE);
}
