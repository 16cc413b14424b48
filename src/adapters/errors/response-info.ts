/** What the headers of a response say: its id, how long to wait, how much of the limits is left. Pure. */

import type { RateLimitFeedback, ResponseInfo } from "../../model/reply.ts";
import { defined } from "../../shared/defined.ts";
import { shorten } from "../../shared/text.ts";
import { dateMs, durationMs, secondsMs } from "./durations.ts";

/** The headers in which providers, and what stands before them, name a request. */
const REQUEST_ID = ["x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "cf-ray"];

export function responseInfo(status: number, headers: Headers, now: number): ResponseInfo {
  const requestId = REQUEST_ID.map((name) => headers.get(name)).find((value) => value);
  const rateLimit = rateLimitFeedback(status, headers, now);
  return {
    status,
    ...(requestId ? { requestId: shorten(requestId, 200) } : {}),
    ...defined({ rateLimit }),
  };
}

/** The wait that a response asks for, in milliseconds: `retry-after-ms`, or `retry-after` as seconds or HTTP date. */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const exact = durationMs(`${headers.get("retry-after-ms") ?? ""}ms`);
  if (exact !== undefined) return exact;
  const value = headers.get("retry-after") ?? "";
  const date = dateMs(value);
  return secondsMs(value) ?? (date === undefined ? undefined : Math.max(0, date - now));
}

type Kind = "requests" | "tokens";
type What = "limit" | "remaining" | "reset";

/** Both spellings: `x-ratelimit-limit-tokens` and `anthropic-ratelimit-tokens-limit`. */
const headerNames = (what: What, kind: Kind) => [
  `x-ratelimit-${what}-${kind}`,
  `anthropic-ratelimit-${kind}-${what}`,
];

/** What a response says of limits; `undefined` if it says nothing and none was hit. */
function rateLimitFeedback(status: number, headers: Headers, now: number): RateLimitFeedback | undefined {
  const rawHeaders: Record<string, string> = {};
  const read = (name: string): string | undefined => {
    const value = headers.get(name);
    if (value === null) return undefined;
    rawHeaders[name] = shorten(value, 200);
    return value;
  };
  const find = (what: What, kind: Kind) => {
    const [first = "", second = ""] = headerNames(what, kind);
    return read(first) ?? read(second);
  };
  const isRateLimited = status === 429;
  const feedback: RateLimitFeedback = {
    ...field("limitRequests", countOf(find("limit", "requests"))),
    ...field("remainingRequests", countOf(find("remaining", "requests"))),
    ...field("resetRequestsAt", resetAt(find("reset", "requests"), now)),
    ...field("limitTokens", countOf(find("limit", "tokens"))),
    ...field("remainingTokens", countOf(find("remaining", "tokens"))),
    ...field("resetTokensAt", resetAt(find("reset", "tokens"), now)),
    isRateLimited,
    rawHeaders,
  };
  read("retry-after");
  read("retry-after-ms");
  return isRateLimited || Object.keys(rawHeaders).length > 0 ? feedback : undefined;
}

function field<Name extends string>(name: Name, value: number | undefined) {
  // SAFETY: the one key is `Name`, and an absent key is what `Partial` allows.
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, number>>;
}

function countOf(value: string | undefined): number | undefined {
  return value !== undefined && /^\s*\d{1,15}\s*$/.test(value) ? Number(value) : undefined;
}

/** What is given in seconds and larger than this is no span, but a time since the epoch. */
const EPOCH_FROM_MS = 1_000_000_000_000;

/** A span, seconds, or a date, as a time. */
function resetAt(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const date = dateMs(value);
  if (date !== undefined) return date;
  const span = durationMs(value) ?? secondsMs(value);
  if (span === undefined) return undefined;
  return Math.round(span >= EPOCH_FROM_MS ? span : now + span);
}
