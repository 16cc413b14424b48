/**
 * The readers that follow a run.
 *
 * RUNSTREAM-5  At most `MAX_RUN_READERS` readers follow a run at once.
 */
import { DramatisError } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { isOver } from "../core/state.ts";
import { type ReadersContext, RunStream } from "./run-stream.ts";

export const MAX_RUN_READERS = 256;

export class RunReaders {
  readonly #readers = new Set<RunStream>();

  constructor(private readonly context: ReadersContext) {}

  /**
   * Returns the entries after `from` as server-sent events; `null` if no entry can follow. Throws `RATE_LIMITED` if the run has
   * `MAX_RUN_READERS` readers.
   */
  stream(principal: Principal, from: number): ReadableStream<Uint8Array> | null {
    const { events, runtime } = this.context;
    if (isOver(runtime.state) && from >= runtime.state.seq) return null;
    this.#checkRoom();
    const stream = new RunStream(this.context, principal, from, () => {
      this.#readers.delete(stream);
      if (this.#readers.size === 0) events.forget();
    });
    this.#readers.add(stream);
    return stream.open();
  }

  /** Passes new entries to the readers. Call it after each commit. */
  wake(): void {
    for (const reader of this.#readers) reader.advance();
  }

  #checkRoom(): void {
    if (this.#readers.size >= MAX_RUN_READERS) for (const reader of this.#readers) reader.probe();
    if (this.#readers.size < MAX_RUN_READERS) return;
    throw tooManyReaders();
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
