/** An answer of D1, or a failure when it takes too long: a database that hangs must not hang those who ask it. */
import type { Clock } from "../ports/clock.ts";

/** Milliseconds; the database itself gives up later. */
export const D1_TIMEOUT_MS = 10_000;

/** What `ask` answers. Rejects when that takes longer than `D1_TIMEOUT_MS`; the answer that comes later is dropped. */
export async function inTime<Answer>(
  clock: Pick<Clock, "timer">,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const answer = ask();
  let stop = () => {};
  const late = new Promise<never>((_, reject) => {
    stop = clock.timer(D1_TIMEOUT_MS, () => reject(new Error(`D1 took more than ${D1_TIMEOUT_MS} ms.`)));
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    stop();
    answer.catch(() => {});
  }
}
