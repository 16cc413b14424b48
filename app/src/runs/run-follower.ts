/**
 * Follows a run live, by server-sent events. After a lost connection it continues at the last entry, after `RECONNECT_MS`. If the server
 * refuses a connection, it tries again after `RETRY_MS`.
 */

import { itemsIn } from "../../../src/client/event-stream.ts";
import type { RunEvent, RunStreamError } from "../../../src/client/index.ts";
import { signedFetch } from "../session.ts";
import { RunLog } from "./run-log.ts";

export type FollowState = "connecting" | "open" | "reconnecting" | "closed";

const RETRY_MS = 5_000;
const RECONNECT_MS = 1_000;
/** Milliseconds between two renderings while entries come. */
const RENDER_MS = 60;

export class RunFollower {
  readonly log = new RunLog();
  state: FollowState = "connecting";
  /** Changes with each rendering. */
  version = 0;
  readonly #id: string;
  readonly #listeners = new Set<() => void>();
  #reading: AbortController | undefined;
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
    this.#reading = new AbortController();
    void this.#read(this.#reading.signal);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const path = `/api/runs/${encodeURIComponent(this.#id)}/events?from=${this.log.seq}`;
    let isRefused = false;
    try {
      const response = await signedFetch(path, { signal, headers: { accept: "text/event-stream" } });
      isRefused = response.status !== 200;
      if (!isRefused) {
        this.#enter("open");
        for await (const event of itemsIn(response, eventOf, signal)) this.#take(event);
      }
    } catch {
      // The connection was lost.
    }
    // The stream ends after a failure without a retry.
    if (signal.aborted || this.log.end !== undefined) return this.#leave();
    this.#enter(isRefused ? "closed" : "reconnecting");
    this.#retry = setTimeout(() => this.#connect(), isRefused ? RETRY_MS : RECONNECT_MS);
  }

  #take(event: RunEvent | RunStreamError): void {
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
    this.#reading?.abort();
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

function eventOf(data: string): RunEvent | RunStreamError {
  // SAFETY: the same definitions type the server's events.
  return JSON.parse(data) as RunEvent | RunStreamError;
}
