/**
 * Byte streams of a conversation's frames.
 *
 * SUB-1  A stream begins with the frames that were missed and continues live, without gap or repetition.
 * SUB-2  A stream holds at most `HIGH_WATER_MARK` unread bytes. It continues as the reader reads. A reader that stalls while frames wait is
 *        cut off, and resumes from its last `seq`.
 * SUB-3  When its principal expires, a stream ends with an `error`.
 * SUB-4  After `SILENCE_MS` without bytes a stream of server-sent events gets a comment, between two events.
 */
import type { SubscribeOptions } from "../../../protocol/conversation-requests.ts";
import { KEEP_ALIVE, SILENCE_MS } from "../../../protocol/event-stream.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { Stall, type StallPorts } from "../../base/sockets/stall.ts";
import { ByteSink } from "../../base/streams/byte-sink.ts";
import { ephemeralFrame } from "../core/frames.ts";
import type { FrameCursor, Take } from "../reads/frame-cursor.ts";
import { FrameText } from "../reads/frame-texts.ts";
import type { StreamedReader, StreamReaders } from "./stream-readers.ts";

export interface StreamOptions extends StallPorts {
  principal: Principal;
  encoding: SubscribeOptions["encoding"];
  cursor: FrameCursor;
  /** Frames that follow the cursor's place. */
  frames?: readonly Frame[];
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** Maximum number of unread bytes in a stream. */
const HIGH_WATER_MARK = 32 * 1024;
/** Bytes of a piece of a long frame. */
const PIECE = 16 * 1024;

const PROBE = new TextEncoder().encode(":\n\n");

export function frameStream(readers: StreamReaders, options: StreamOptions): ReadableStream<Uint8Array> {
  const size = ({ byteLength }: Uint8Array) => byteLength;
  return new ReadableStream(new FrameSource(readers, options), { highWaterMark: HIGH_WATER_MARK, size });
}

/** The source of a stream: `start`, `pull` and `cancel` are called by `ReadableStream`. */
class FrameSource implements StreamedReader {
  readonly expiresAt: number | undefined;
  readonly #stall: Stall;
  readonly #sink: ByteSink;
  /** The pieces of a long frame that are not in the stream yet. */
  #rest: Iterator<Uint8Array> | undefined;
  #stopSilence: (() => void) | undefined;

  constructor(
    private readonly readers: StreamReaders,
    private readonly options: StreamOptions,
  ) {
    this.expiresAt = options.principal.expiresAt;
    this.#sink = new ByteSink(options.clock, () => this.#leave());
    this.#stall = new Stall(options, {
      held: () => Math.max(0, HIGH_WATER_MARK - this.#sink.room),
      advance: () => this.#sink.attempt(() => this.#advance()),
      cut: () => {
        this.#sink.end(new Error("The reader fell behind; resume from the last sequence number."));
      },
    });
  }

  start(controller: Controller): void {
    const { cursor, frames = [], encoding } = this.options;
    this.#sink.open(controller);
    this.readers.add(this);
    this.#sink.attempt(() => {
      if (this.#hasExpired()) return;
      if (encoding === "sse") this.#awaitSilence(SILENCE_MS);
      cursor.offer(frames, this.#take);
      this.#advance();
    });
  }

  pull(): void {
    this.#stall.progress();
    this.#sink.attempt(() => this.#advance());
  }

  cancel(): void {
    this.#leave();
  }

  publish(frames: readonly Frame[]): void {
    this.#sink.attempt(() => {
      if (this.#hasExpired()) return;
      this.options.cursor.offer(frames, this.#take);
      this.#advance();
    });
  }

  sweep(): void {
    this.#sink.attempt(() => {
      if (this.#hasExpired()) return;
      // A write fails if the client has left. Without frames, a comment is the only possible write.
      if (this.options.encoding === "sse" && this.#rest === undefined && this.#sink.room > 0)
        this.#sink.write(PROBE);
    });
  }

  expel(mayRead: (principal: Principal) => boolean): void {
    this.#sink.attempt(() => {
      if (mayRead(this.options.principal)) return;
      this.#refuse("NOT_FOUND", "You no longer take part in this conversation.");
    });
  }

  /** Fills the stream, and closes it after its last frame. */
  #advance(): void {
    const { cursor } = this.options;
    this.#writeRest();
    const mayTake = this.#rest === undefined && this.#sink.room > 0 && this.#stall.hasRoom();
    if (mayTake) cursor.catchUp(this.#take, () => this.#sink.room);
    this.#stall.note();
    if (this.#rest === undefined && cursor.isOver) this.#sink.end();
    else this.#stall.watch(this.#rest !== undefined || cursor.isBehind);
  }

  readonly #take: Take = (frame) => {
    if (this.#rest !== undefined) return false;
    if (!this.#stall.admits(Math.min(frame.text.length, PIECE))) return false;
    this.#rest = piecesOf(frame.bytes(this.options.encoding));
    this.#writeRest();
    this.#stall.note();
    return true;
  };

  #writeRest(): void {
    while (this.#rest !== undefined && this.#sink.room > 0) {
      const { done, value } = this.#rest.next();
      if (done) this.#rest = undefined;
      else this.#sink.write(value);
    }
  }

  #awaitSilence(milliseconds: number): void {
    const { clock } = this.options;
    this.#stopSilence = clock.timer(milliseconds, () =>
      this.#sink.attempt(() => {
        const left = this.#sink.writtenAt + SILENCE_MS - clock.now();
        const isSilent = left <= 0 && this.#rest === undefined && this.#sink.room > 0;
        if (isSilent) this.#sink.write(KEEP_ALIVE);
        this.#awaitSilence(left > 0 ? left : SILENCE_MS);
      }),
    );
  }

  #leave(): void {
    this.#stall.end(true);
    this.#stopSilence?.();
    this.readers.remove(this);
  }

  #hasExpired(): boolean {
    const { principal, clock } = this.options;
    if (!hasExpired(principal, clock.now())) return false;
    this.#refuse(
      "UNAUTHENTICATED",
      "Your token has expired. Connect again with a new token and the last `seq`.",
    );
    return true;
  }

  #refuse(code: "UNAUTHENTICATED" | "NOT_FOUND", message: string): void {
    const { clock, encoding } = this.options;
    const error = { code, message, retriable: false };
    const frame = new FrameText(JSON.stringify(ephemeralFrame("error", error, {}, clock.now())), undefined);
    // Another frame cannot follow a partly sent frame.
    if (this.#rest === undefined) this.#sink.write(frame.bytes(encoding));
    this.#sink.end();
  }
}

/** Yields the pieces of a frame. All readers share its bytes. */
function* piecesOf(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}
