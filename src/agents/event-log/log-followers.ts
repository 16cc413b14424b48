/**
 * The readers that follow a log.
 *
 * LOGFOLLOW-1  A follower gets each event that its filter selects once and in order: first the stored events after its position, then each
 *           new event.
 * LOGFOLLOW-2  At most `MAX_FOLLOWERS` readers follow a log at once. A follower holds at most `AHEAD` events, and reads a bounded number of
 *           batches at a time.
 */
import type { Clock } from "../../ports/clock.ts";
import type { EventFilter, LoggedEvent } from "../../protocol/event-log.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { EntryReaders } from "../base/streams/entry-readers.ts";
import type { EntrySource } from "../base/streams/entry-stream.ts";
import type { LogReader } from "./log-reader.ts";

const MAX_FOLLOWERS = 256;
/** Events that a follower holds. */
const AHEAD = 16;
/** Milliseconds between two reads of a follower that has found no event yet. */
const PAUSE_MS = 10;

const encoder = new TextEncoder();

export class LogFollowers {
  readonly #readers: EntryReaders;

  constructor(
    private readonly clock: Pick<Clock, "now" | "timer">,
    private readonly reader: Pick<LogReader, "scan">,
    /** Returns the number of the last event. */
    private readonly last: () => number,
  ) {
    this.#readers = new EntryReaders(clock, MAX_FOLLOWERS, tooManyFollowers);
  }

  /** Returns the stream of a follower. Throws `RATE_LIMITED`. */
  open(principal: Principal, filter: EventFilter): ReadableStream<Uint8Array> {
    return this.#readers.open(principal, this.#events(filter));
  }

  /** Passes new events to the followers. Call it after each commit. */
  wake(): void {
    this.#readers.wake();
  }

  #events(filter: EventFilter): EntrySource {
    let from = (filter.after ?? 0) + 1;
    const ahead: Uint8Array[] = [];
    const read = () => {
      if (from > this.last()) return;
      const { events, next } = this.reader.scan(filter, from, "asc", AHEAD);
      ahead.push(...events.map(bytesOf));
      from = next ?? this.last() + 1;
      if (events.length === 0 && next !== null) this.clock.timer(PAUSE_MS, () => this.wake());
    };
    return {
      isOver: false,
      event: () => {
        if (ahead.length === 0) read();
        return ahead[0] ?? null;
      },
      next: () => {
        ahead.shift();
      },
    };
  }
}

function bytesOf(event: LoggedEvent): Uint8Array {
  return encoder.encode(`id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`);
}

function tooManyFollowers(): DramatisError {
  const message = `At most ${MAX_FOLLOWERS} readers may follow the events of a tenant at once. Try again later.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true });
}
