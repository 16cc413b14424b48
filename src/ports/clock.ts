/** The time of an actor. Cores never read it: the shell passes `now` with each input. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `milliseconds`. Rejects with the signal's reason if that aborts first. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `milliseconds`, unless the returned function was called before. */
  timer(milliseconds: number, callback: () => void): () => void;
}

/** Returns the `sleep` of a clock with this `timer`. */
export function sleepBy(timer: Clock["timer"]): Clock["sleep"] {
  return (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = timer(milliseconds, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
}

/** Returns the result of `work`. Rejects with `late` if that takes more than `milliseconds`, and drops a later result. */
export async function withTimeout<Value>(
  clock: Pick<Clock, "timer">,
  milliseconds: number,
  work: Promise<Value>,
  late: Error,
): Promise<Value> {
  let stop = () => {};
  const timeout = new Promise<never>((_, reject) => {
    stop = clock.timer(milliseconds, () => reject(late));
  });
  return Promise.race([work, timeout]).finally(() => stop());
}
