/** Reads the headers of a response: its id, the requested wait, and the state of the rate limits. Pure. */
import type { RateLimitFeedback, ResponseInfo } from "../../model/reply.ts";
import { defined } from "../../shared/defined.ts";
import { shorten } from "../../shared/text.ts";
import { dateMs, durationMs, secondsMs } from "./durations.ts";

/** The headers that contain the request id of providers and proxies. */
const REQUEST_ID = ["x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "cf-ray"];

export function responseInfo(status: number, headers: Headers, now: number): ResponseInfo {
  const requestId = REQUEST_ID.map((name) => headers.get(name)).find((value) => value);
  const rateLimit = rateLimitFeedback(status, headers, now);
  return {
    status,
    ...defined({ requestId: requestId ? shorten(requestId, 200) : undefined, rateLimit }),
  };
}

/** Returns the wait that a response requests, in milliseconds. `retry-after` holds seconds or an HTTP date. */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const exact = durationMs(`${headers.get("retry-after-ms") ?? ""}ms`);
  if (exact !== undefined) return exact;
  const value = headers.get("retry-after") ?? "";
  const date = dateMs(value);
  return secondsMs(value) ?? (date === undefined ? undefined : Math.max(0, date - now));
}

type Kind = "requests" | "tokens";

/** Returns the rate-limit information of a response. `undefined` for a response without this information, unless it hit a limit. */
function rateLimitFeedback(status: number, headers: Headers, now: number): RateLimitFeedback | undefined {
  const rawHeaders: Record<string, string> = {};
  const read = (name: string): string | undefined => {
    const value = headers.get(name) ?? undefined;
    if (value !== undefined) rawHeaders[name] = shorten(value, 200);
    return value;
  };
  /** Reads `x-ratelimit-limit-tokens` or `anthropic-ratelimit-tokens-limit`. */
  const find = (property: "limit" | "remaining" | "reset", kind: Kind) =>
    read(`x-ratelimit-${property}-${kind}`) ?? read(`anthropic-ratelimit-${kind}-${property}`);
  const isRateLimited = status === 429;
  const limits = defined({
    limitRequests: countOf(find("limit", "requests")),
    remainingRequests: countOf(find("remaining", "requests")),
    resetRequestsAt: resetAt(find("reset", "requests"), now),
    limitTokens: countOf(find("limit", "tokens")),
    remainingTokens: countOf(find("remaining", "tokens")),
    resetTokensAt: resetAt(find("reset", "tokens"), now),
  });
  read("retry-after");
  read("retry-after-ms");
  return isRateLimited || Object.keys(rawHeaders).length > 0
    ? { ...limits, isRateLimited, rawHeaders }
    : undefined;
}

function countOf(value: string | undefined): number | undefined {
  return value !== undefined && /^\s*\d{1,15}\s*$/.test(value) ? Number(value) : undefined;
}

/** A larger number of seconds is not a span but a time since the epoch. */
const EPOCH_FROM_MS = 1_000_000_000_000;

/** Converts a span, seconds or a date to a time. */
function resetAt(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const date = dateMs(value);
  if (date !== undefined) return date;
  const span = durationMs(value) ?? secondsMs(value);
  if (span === undefined) return undefined;
  return Math.round(span >= EPOCH_FROM_MS ? span : now + span);
}
