/**
 * The readers that follow a run.
 *
 * RUNSTREAM-5  At most `MAX_RUN_READERS` readers follow a run at once.
 */
import type { Clock } from "../../../ports/clock.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { EntryReaders } from "../../base/streams/entry-readers.ts";
import type { EntrySource } from "../../base/streams/entry-stream.ts";
import { isOver, type RunState } from "../core/state.ts";
import type { RunEvents } from "../reads/run-events.ts";

export const MAX_RUN_READERS = 256;

interface ReadersContext {
  clock: Pick<Clock, "now" | "timer">;
  events: RunEvents;
  runtime: { readonly state: Pick<RunState, "seq" | "status"> };
}

export class RunReaders {
  readonly #readers: EntryReaders;

  constructor(private readonly context: ReadersContext) {
    const { clock, events } = context;
    this.#readers = new EntryReaders(clock, MAX_RUN_READERS, tooManyReaders, () => events.forget());
  }

  /**
   * Returns the entries after `from` as server-sent events; `null` if no entry can follow. Throws `RATE_LIMITED` if the run has
   * `MAX_RUN_READERS` readers.
   */
  stream(principal: Principal, from: number): ReadableStream<Uint8Array> | null {
    const { state } = this.context.runtime;
    if (isOver(state) && from >= state.seq) return null;
    return this.#readers.open(principal, this.#entriesAfter(from));
  }

  /** Passes new entries to the readers. Call it after each commit. */
  wake(): void {
    this.#readers.wake();
  }

  #entriesAfter(from: number): EntrySource {
    const { events, runtime } = this.context;
    let seq = from + 1;
    return {
      get isOver() {
        return isOver(runtime.state);
      },
      event: () => (seq <= runtime.state.seq ? events.event(seq) : null),
      next: () => {
        seq += 1;
      },
    };
  }
}

/** The refusal of a reader beyond `MAX_RUN_READERS`. */
export function tooManyReaders(): DramatisError {
  return new DramatisError(
    "RATE_LIMITED",
    `At most ${MAX_RUN_READERS} readers may follow a run at once. Try again later.`,
    { retriable: true },
  );
}
