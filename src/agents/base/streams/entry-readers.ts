/** The streams that follow the same entries. */
import type { Clock } from "../../../ports/clock.ts";
import type { DramatisError } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { type EntrySource, EntryStream } from "./entry-stream.ts";

export interface EntryReadersPorts {
  clock: Pick<Clock, "now" | "timer">;
  /** Most streams at once. */
  max: number;
  /** Returns the error for more than `max` streams. */
  full(): DramatisError;
  /** Called when the last stream has ended. */
  onEmpty?(): void;
}

export class EntryReaders {
  readonly #streams = new Set<EntryStream>();

  constructor(private readonly ports: EntryReadersPorts) {}

  /** Returns a stream of the entries of a source. Throws the error of `full`. */
  open(principal: Principal, source: EntrySource): ReadableStream<Uint8Array> {
    const { clock, max, full, onEmpty } = this.ports;
    if (this.#streams.size >= max) for (const stream of this.#streams) stream.probe();
    if (this.#streams.size >= max) throw full();
    const stream = new EntryStream(clock, source, principal, () => {
      this.#streams.delete(stream);
      if (this.#streams.size === 0) onEmpty?.();
    });
    this.#streams.add(stream);
    return stream.open();
  }

  /** Passes new entries to the streams. Call it after each commit. */
  wake(): void {
    for (const stream of this.#streams) stream.advance();
  }
}
