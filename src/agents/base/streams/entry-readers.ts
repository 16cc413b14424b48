/** The streams that follow the same entries. */
import type { Clock } from "../../../ports/clock.ts";
import type { DramatisError } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { type EntrySource, EntryStream } from "./entry-stream.ts";

export class EntryReaders {
  readonly #streams = new Set<EntryStream>();

  /** `full` returns the error for more than `max` streams at once. `onEmpty` is called when the last stream has ended. */
  constructor(
    private readonly clock: Pick<Clock, "now" | "timer">,
    private readonly max: number,
    private readonly full: () => DramatisError,
    private readonly onEmpty = () => {},
  ) {}

  /** Returns a stream of the entries of a source. Throws the error of `full`. */
  open(principal: Principal, source: EntrySource): ReadableStream<Uint8Array> {
    if (this.#streams.size >= this.max) for (const stream of this.#streams) stream.probe();
    if (this.#streams.size >= this.max) throw this.full();
    const stream = new EntryStream(this.clock, source, principal, () => {
      this.#streams.delete(stream);
      if (this.#streams.size === 0) this.onEmpty();
    });
    this.#streams.add(stream);
    return stream.open();
  }

  /** Passes new entries to the streams. Call it after each commit. */
  wake(): void {
    for (const stream of this.#streams) stream.advance();
  }
}
