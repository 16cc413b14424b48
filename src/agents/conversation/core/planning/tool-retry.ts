/**
 * Retries of tool calls after a transient failure. Pure.
 *
 * TOOLRETRY-1  After a transient failure, a call of a `pure` or `idempotent` tool is retried with the same operation id, until its attempts
 *              are used up. A `once` tool and a failure that the tool reported are not retried.
 * TOOLRETRY-2  The pause before an attempt is the tool's backoff, doubled with each further attempt up to a minute. The pause of a task may
 *              be constant, or grow by its first length, and has its own limit. It survives a crash and ends with the turn.
 * TOOLRETRY-3  A crash uses up no attempt: it repeats the attempt that it interrupted.
 */

import { nextAttemptAt as nextAttempt } from "../../../../library/tools/retry.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import type { Operation } from "../operation.ts";

/** Returns the earliest time of an operation's next attempt; `undefined` where the failed one was the last. */
export function nextAttemptAt(
  { tools }: Pick<VersionChain, "tools">,
  { name, effect, attempt }: Pick<Operation, "name" | "effect" | "attempt">,
  now: number,
): number | undefined {
  const retry = tools.find(({ definition }) => definition.name === name)?.definition.retry;
  return nextAttempt(retry, { effect, attempt }, now);
}
