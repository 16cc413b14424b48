/** The time of a client. */
export interface ClientClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `task` once after a delay. Returns a function that cancels it. */
  timer(milliseconds: number, task: () => void): () => void;
}

/** The runtime's own clock. */
export const runtimeClock: ClientClock = {
  now: () => Date.now(),
  timer(milliseconds, task) {
    const timer = setTimeout(task, milliseconds);
    return () => clearTimeout(timer);
  },
};
