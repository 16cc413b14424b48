/**
 * Failures of model calls as data: which class a failure belongs to, whether trying again can help, how long to wait.
 *
 * MERR-1  `rate_limit`, `timeout`, `transient` and `network` are retriable; nothing else is.
 * MERR-2  A message taken from a provider is redacted and at most 500 characters long.
 */
import { z } from "zod";
import { redactSecrets } from "./redact.ts";
import { shorten } from "./text.ts";
import type { ErrorCategory, ModelError, ProviderId } from "./types.ts";

const RETRIABLE: ReadonlySet<ErrorCategory> = new Set(["rate_limit", "timeout", "transient", "network"]);

const MAX_MESSAGE = 500;

/** What else is known of a failure. */
export interface FailureDetails {
  status?: number;
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

export function modelError(
  provider: ProviderId,
  category: ErrorCategory,
  message: string,
  details: FailureDetails = {},
): ModelError {
  return { category, message, retriable: RETRIABLE.has(category), provider, ...details };
}

/** The category of an HTTP status that is not a success. */
export function categoryOfStatus(status: number): ErrorCategory {
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
    case 429:
      return "rate_limit";
    default:
      return "unknown";
  }
}

/** Codes and types that providers write into their error bodies. */
const CATEGORY_BY_CODE: ReadonlyMap<string, ErrorCategory> = new Map([
  ["insufficient_quota", "quota"],
  ["billing_hard_limit_reached", "quota"],
  ["billing_error", "quota"],
  ["rate_limit_exceeded", "rate_limit"],
  ["rate_limit_error", "rate_limit"],
  ["invalid_api_key", "auth"],
  ["authentication_error", "auth"],
  ["permission_error", "auth"],
  ["model_not_found", "not_found"],
  ["not_found_error", "not_found"],
  ["context_length_exceeded", "validation"],
  ["invalid_request_error", "validation"],
  ["request_too_large", "validation"],
  ["timeout", "timeout"],
  ["timeout_error", "timeout"],
]);

/** What an error body says. */
export interface ProviderError {
  /** Redacted and bounded. */
  message?: string;
  /** The class its code names, if it names one. */
  category?: ErrorCategory;
}

const code = z.union([z.string(), z.number()]).nullish().catch(undefined);
const text = z.string().nullish().catch(undefined);
const errorObject = z.object({ message: text, type: text, code, status: code });
const errorBody = z.object({
  error: z.union([errorObject, z.string()]).nullish().catch(undefined),
  errors: z.array(errorObject).nullish().catch(undefined),
  message: text,
  detail: text,
  code,
});

/** Reads an error body in the shapes that compatible servers use; text that is not JSON is its own message. */
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
  const said = first?.message ?? message ?? detail;
  const named = [first?.code, first?.status, parsed.data.code, first?.type];
  const category = named.map(categoryOfCode).find((found) => found !== undefined);
  return {
    ...(said ? { message: clean(said) } : {}),
    ...(category === undefined ? {} : { category }),
  };
}

/** An error that came inside a stream whose status was already a success. Without a known code it is the server's fault. */
export function inBandError(provider: ProviderId, value: unknown): ModelError {
  const { message, category } = readErrorBody(JSON.stringify({ error: value }));
  return modelError(provider, category ?? "transient", message ?? "The provider reported an error.");
}

/** The wait that a response asks for, in milliseconds: `retry-after-ms`, or `retry-after` as seconds or HTTP date. */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const exact = seconds(headers.get("retry-after-ms"));
  if (exact !== undefined) return exact;
  const value = headers.get("retry-after");
  const inSeconds = seconds(value);
  if (inSeconds !== undefined) return inSeconds * 1000;
  // `Date.parse` takes almost anything for a date, so only what begins like an HTTP date is given to it.
  const date = value !== null && /^[A-Za-z]{3,9},? /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function seconds(value: string | null): number | undefined {
  return value !== null && /^\s*\d{1,12}(?:\.\d{1,9})?\s*$/.test(value) ? Number(value) : undefined;
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
