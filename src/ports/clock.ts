/** The time of an actor. Cores never read it: the shell passes `now` with each input. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `milliseconds`. Rejects with the signal's reason if that aborts first. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `milliseconds`, unless the returned function was called before. */
  timer(milliseconds: number, callback: () => void): () => void;
}
