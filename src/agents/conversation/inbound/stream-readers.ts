/** The byte streams of a conversation as readers of its frames. */
import type { Frame } from "../../../protocol/frames.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { MAX_READERS } from "./socket-limits.ts";

/** The part of a stream that its conversation uses. */
export interface StreamedReader {
  /** Milliseconds since 1970; `undefined` if the stream does not expire. */
  readonly expiresAt: number | undefined;
  publish(frames: readonly Frame[]): void;
  /** Ends a stream if it has expired or its client has left. */
  sweep(): void;
  /** Ends the stream if its principal has lost its read access. */
  expel(mayRead: (principal: Principal) => boolean): void;
}

export class StreamReaders {
  readonly #readers = new Set<StreamedReader>();

  /** `onExpiring` gets the expiry of a new stream. Call `sweep` then. */
  constructor(private readonly onExpiring: (at: number) => void) {}

  /** The next expiry; `Infinity` without an expiry. */
  get nextExpiry(): number {
    return Math.min(...[...this.#readers].map(({ expiresAt }) => expiresAt ?? Infinity));
  }

  /** Throws `RATE_LIMITED` if there are `MAX_READERS` streams, with `reserved` streams that begin in a moment. */
  checkRoom(reserved: number): void {
    const isFull = () => this.#readers.size + reserved >= MAX_READERS;
    if (isFull()) this.sweep();
    if (isFull()) throw tooManyReaders();
  }

  add(reader: StreamedReader): void {
    this.#readers.add(reader);
    if (reader.expiresAt !== undefined) this.onExpiring(reader.expiresAt);
  }

  remove(reader: StreamedReader): void {
    this.#readers.delete(reader);
  }

  publish(frames: readonly Frame[]): void {
    this.#forEach((reader) => reader.publish(frames));
  }

  /** Ends expired streams, and streams without a client. */
  sweep(): void {
    this.#forEach((reader) => reader.sweep());
  }

  /** Ends the streams of principals without read access. */
  expel(mayRead: (principal: Principal) => boolean): void {
    this.#forEach((reader) => reader.expel(mayRead));
  }

  /** If a reader throws, the other readers continue. */
  #forEach(act: (reader: StreamedReader) => void): void {
    for (const reader of this.#readers) {
      try {
        act(reader);
      } catch (error) {
        console.error(error);
      }
    }
  }
}

/** Returns the error for more than `MAX_READERS` readers. */
export function tooManyReaders(): DramatisError {
  const message = `At most ${MAX_READERS} readers may follow a conversation at once; try again later.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true });
}
