/** Delivers a result to the caller's actor by name, when the caller of the batch is lost. */
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";
import type { TaskResult, TaskResultApi } from "../../protocol/executor-api.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";

/** Milliseconds before the second attempt, the third, …: together less than the caller's actor waits for the result. */
const BACKOFF_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];

/** Milliseconds in which the caller's actor must answer an attempt. */
const ATTEMPT_MS = 3_000;

/**
 * Sends the result until the caller's actor has taken or refused it, or the attempts are used up. Each attempt calls `connect`
 * for the actor's stub. Never rejects.
 */
export async function deliverResult(
  clock: Pick<Clock, "sleep" | "timer">,
  connect: () => Promise<TaskResultApi>,
  result: TaskResult,
): Promise<void> {
  for (const backoff of [...BACKOFF_MS, null]) {
    try {
      const answer = await withDeadline(clock, ATTEMPT_MS, async () =>
        (await connect()).handleTaskResult(result),
      );
      unwrap(answer);
      return;
    } catch (error) {
      const isRefused = error instanceof DramatisError && !error.retriable;
      // The operation may be gone: a crash forgets a reply that was not committed, and what it called.
      if (isRefused && error.code === "NOT_FOUND") return;
      if (isRefused || backoff === null) return console.error(error);
      await clock.sleep(backoff);
    }
  }
}
