/** Backoff between attempts. Pure. */
import type { RetryPolicy, ToolEffect } from "../../protocol/definition-parts.ts";
import { MAX_TOOL_BACKOFF_MS } from "./tool-schema.ts";

/** Returns the pause after a failed attempt, in milliseconds. */
export function pauseAfter(
  { backoffMs, backoff = "exponential", maxDelayMs = MAX_TOOL_BACKOFF_MS }: RetryPolicy,
  attempt: number,
): number {
  const factor = backoff === "none" ? 1 : backoff === "linear" ? attempt : 2 ** (attempt - 1);
  return Math.min(backoffMs * factor, maxDelayMs, MAX_TOOL_BACKOFF_MS);
}

/** Returns the earliest time of the attempt after a failed attempt. Returns `undefined` after the last attempt and for a `once` effect. */
export function nextAttemptAt(
  retry: RetryPolicy | undefined,
  { effect, attempt }: { effect: ToolEffect; attempt: number },
  now: number,
): number | undefined {
  if (retry === undefined || effect === "once" || attempt >= retry.maxAttempts) return undefined;
  return now + pauseAfter(retry, attempt);
}
