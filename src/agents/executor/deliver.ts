/** Delivers a result to the caller's actor by name, after the caller of the batch is lost. */
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";
import type { TaskResult, TaskResultApi } from "../../protocol/executor-api.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";

/** Pauses between attempts, in milliseconds. In total less than the caller's actor waits for the result. */
const BACKOFF_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];

/** Timeout of one attempt, in milliseconds. */
const ATTEMPT_MS = 3_000;

/**
 * Sends the result until the caller's actor accepts or refuses it, or no attempts are left. Each attempt calls `connect` for the actor's
 * stub. Never rejects.
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
      // The operation may be missing: a crash drops an uncommitted reply and its calls.
      if (isRefused && error.code === "NOT_FOUND") return;
      if (isRefused || backoff === null) return console.error(error);
      await clock.sleep(backoff);
    }
  }
}
