/** Waiting for what may not heed a signal. */

/** What `run` gives, or the signal's reason if that comes first; `discard` gets what comes too late. */
export async function abortable<Answer>(
  run: () => Promise<Answer>,
  signal: AbortSignal,
  discard: (late: Answer) => unknown = () => undefined,
): Promise<Answer> {
  signal.throwIfAborted();
  const running = run();
  let stop = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => {
      reject(signal.reason);
      running.then(discard).catch(() => undefined);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([running, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
