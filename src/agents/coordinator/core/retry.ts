/** Further attempts of a node's task. Pure. */
import { pauseAfter } from "../../../library/tools/retry.ts";
import type { PinnedNodeTask } from "../../../protocol/pinned-workflow.ts";

/** Returns the earliest time of the attempt after a failed attempt; `undefined` after the last attempt. */
export function nextAttemptAt(
  { retry, effect }: PinnedNodeTask,
  attempt: number,
  now: number,
): number | undefined {
  if (retry === undefined || effect === "once" || attempt >= retry.maxAttempts) return undefined;
  return now + pauseAfter(retry, attempt);
}
