/** Time as an actor sees it. Cores never read it: the shell passes `now` in with each input. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `milliseconds`; rejects with the signal's reason if it aborts first. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `milliseconds`, unless the function it returns was called before. */
  timer(milliseconds: number, callback: () => void): () => void;
}
