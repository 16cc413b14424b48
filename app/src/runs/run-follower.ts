/**
 * Follows a run live, by an `EventSource`. The browser reconnects after a lost connection and continues at the last entry. If the
 * server refuses a connection, the follower tries again after `RETRY_MS`.
 */
import type { RunEvent, RunStreamError } from "../../../src/client/index.ts";
import { RunLog } from "./run-log.ts";

export type FollowState = "connecting" | "open" | "reconnecting" | "closed";

const RETRY_MS = 5_000;
/** Milliseconds between two renderings while entries come. */
const RENDER_MS = 60;

export class RunFollower {
  readonly log = new RunLog();
  state: FollowState = "connecting";
  /** Changes with each rendering. */
  version = 0;
  readonly #id: string;
  readonly #listeners = new Set<() => void>();
  #source: EventSource | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #rendering: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    this.#id = id;
  }

  /** Follows the run while there is a subscriber. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#connect();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#leave();
    };
  };

  readonly snapshot = (): number => this.version;

  /** Follows the run again after a retry. */
  readonly resume = (): void => {
    if (this.#listeners.size === 0) return;
    this.#leave();
    this.#open();
  };

  #connect(): void {
    if (this.log.end === undefined) this.#open();
  }

  #open(): void {
    const source = new EventSource(`/api/runs/${encodeURIComponent(this.#id)}/events?from=${this.log.seq}`);
    this.#source = source;
    source.onopen = () => this.#enter("open");
    source.onmessage = ({ data }) => this.#take(String(data));
    source.onerror = () => {
      // The stream ends after a failure without a retry.
      if (this.log.end !== undefined) return this.#leave();
      if (source.readyState !== EventSource.CLOSED) return this.#enter("reconnecting");
      this.#enter("closed");
      this.#retry = setTimeout(() => this.#connect(), RETRY_MS);
    };
  }

  #take(text: string): void {
    // SAFETY: the same definitions type the server's events.
    const event = JSON.parse(text) as RunEvent | RunStreamError;
    if (event.type === "error") return;
    this.log.add(event);
    const { end } = this.log;
    // A retry may follow a failure, in the same stream.
    if (end !== undefined && end.status !== "failed") this.#leave();
    this.#render();
  }

  #enter(state: FollowState): void {
    this.state = state;
    this.#render();
  }

  #leave(): void {
    this.#source?.close();
    clearTimeout(this.#retry);
  }

  #render(): void {
    this.#rendering ??= setTimeout(() => {
      this.#rendering = undefined;
      this.version += 1;
      for (const listener of this.#listeners) listener();
    }, RENDER_MS);
  }
}
