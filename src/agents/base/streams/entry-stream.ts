/**
 * A reader that follows entries, such as the journal of a run, as a stream of bytes.
 *
 * RUNSTREAM-1  A stream has each entry after its position once and in order: first the stored entries, then each new entry after its
 *              commit. It ends after the last entry, such as the end of the run.
 * RUNSTREAM-2  A stream holds its place in the journal and about `HIGH_WATER_MARK` unread bytes. It continues as the reader reads. A reader
 *              that stalls for `STALL_MS` while entries wait is cut off, and resumes from its last `seq`.
 * RUNSTREAM-3  When its principal expires, a stream ends with an `error` event.
 * RUNSTREAM-4  After `SILENCE_MS` without bytes a stream gets a comment, between two events. The write fails if the client has left.
 */
import type { Clock } from "../../../ports/clock.ts";
import { KEEP_ALIVE, SILENCE_MS } from "../../../protocol/event-stream.ts";
import { PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { ByteSink } from "./byte-sink.ts";

export interface EntrySource {
  /** No entry follows the present entry. */
  readonly isOver: boolean;
  /** Returns the event of the present entry; `null` until the entry exists. */
  event(): Uint8Array | null;
  next(): void;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** Maximum number of unread bytes in a stream. */
export const HIGH_WATER_MARK = 32 * 1024;
/** Bytes of one write: parts of several events, or a part of a long event. */
const CHUNK = 16 * 1024;
/** Milliseconds until a stalled reader is cut off. */
export const STALL_MS = 60_000;

/** The source of a stream: `start`, `pull` and `cancel` are called by `ReadableStream`. */
export class EntryStream {
  /** The bytes of the present event that are written. */
  #offset = 0;
  readonly #sink: ByteSink;
  #takenAt: number;
  #stopTimer: (() => void) | undefined;

  constructor(
    private readonly clock: Pick<Clock, "now" | "timer">,
    private readonly source: EntrySource,
    private readonly principal: Principal,
    /** Called once, when the stream has ended or its client has left. */
    private readonly onEnd: () => void,
  ) {
    this.#takenAt = clock.now();
    this.#sink = new ByteSink(clock, () => this.#leave());
  }

  /** Returns the stream. Call it once. */
  open(): ReadableStream<Uint8Array> {
    const size = ({ byteLength }: Uint8Array) => byteLength;
    return new ReadableStream(this, { highWaterMark: HIGH_WATER_MARK, size });
  }

  start(controller: Controller): void {
    this.#sink.open(controller);
    this.#watch();
    this.advance();
  }

  pull(): void {
    this.#takenAt = this.clock.now();
    this.advance();
  }

  cancel(): void {
    this.#leave();
  }

  /** Fills the stream, and ends it after the last entry. */
  advance(): void {
    this.#sink.attempt(() => {
      if (this.#hasExpired()) return;
      while (this.#sink.room > 0 && this.source.event() !== null) this.#sink.write(this.#chunk());
      if (this.source.isOver && this.source.event() === null) this.#sink.end();
    });
  }

  /** Ends the stream if its principal has expired. Otherwise probes whether its client has left. */
  probe(): void {
    this.#sink.attempt(() => {
      if (!this.#hasExpired() && this.#offset === 0 && this.#sink.room > 0) this.#sink.write(KEEP_ALIVE);
    });
  }

  /** Returns the next bytes of the events that are committed: at most `CHUNK`. */
  #chunk(): Uint8Array {
    const parts: Uint8Array[] = [];
    let left = CHUNK;
    for (let event = this.source.event(); left > 0 && event !== null; event = this.source.event()) {
      const part = event.subarray(this.#offset, this.#offset + left);
      parts.push(part);
      left -= part.length;
      this.#offset += part.length;
      if (this.#offset < event.length) break;
      this.source.next();
      this.#offset = 0;
    }
    return joined(parts, CHUNK - left);
  }

  /** Checks the stream periodically for expiry, silence and a stalled reader. */
  #watch(): void {
    const { clock } = this;
    const { expiresAt = Number.POSITIVE_INFINITY } = this.principal;
    const silentIn = this.#sink.writtenAt + SILENCE_MS - clock.now();
    const wait = Math.min(silentIn > 0 ? silentIn : SILENCE_MS, Math.max(0, expiresAt - clock.now()));
    this.#stopTimer = clock.timer(wait, () => {
      const now = clock.now();
      if (this.#sink.room <= 0 && now - this.#takenAt > STALL_MS) {
        this.#sink.end(new Error("The reader fell behind; resume from the last sequence number."));
        return;
      }
      if (now >= this.#sink.writtenAt + SILENCE_MS) this.probe();
      else this.advance();
      if (this.#stopTimer !== undefined) this.#watch();
    });
  }

  #leave(): void {
    if (this.#stopTimer === undefined) return;
    this.#stopTimer();
    this.#stopTimer = undefined;
    this.onEnd();
  }

  #hasExpired(): boolean {
    if (!hasExpired(this.principal, this.clock.now())) return false;
    // Another event cannot follow a partly sent event.
    if (this.#offset === 0) this.#sink.write(EXPIRED);
    this.#sink.end();
    return true;
  }
}

const EXPIRED = new TextEncoder().encode(
  `data: ${JSON.stringify({
    v: PROTOCOL_VERSION,
    type: "error",
    data: {
      code: "UNAUTHENTICATED",
      message: "Your token has expired. Connect again with a new token and the last `seq`.",
      retriable: false,
    },
  })}\n\n`,
);

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
