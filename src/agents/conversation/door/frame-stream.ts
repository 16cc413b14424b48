/**
 * Byte streams of a conversation's frames.
 *
 * SUB-1  A stream begins with the frames that were missed and continues live, without gap or repetition.
 * SUB-2  A stream holds at most `HIGH_WATER_MARK` of what its reader has not taken; the reader gets more as it takes them.
 *        A reader that takes nothing while frames wait is cut off, and resumes from its last `seq`.
 * SUB-3  The stream of a principal ends when that expires, with an `error` that says so.
 * SUB-4  After `SILENCE_MS` without bytes a stream of server-sent events gets a comment, between two events.
 */

import type { Clock } from "../../../ports/clock.ts";
import type { SubscribeOptions } from "../../../protocol/conversation-api.ts";
import { KEEP_ALIVE, SILENCE_MS } from "../../../protocol/event-stream.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { ephemeralFrame } from "../core/frames.ts";
import type { FrameCursor, Take } from "../reads/frame-cursor.ts";
import { FrameText } from "../reads/frame-texts.ts";
import { CHECK_MS, type Outflow, stallMs } from "./outflow.ts";
import type { Subscribers } from "./subscribers.ts";

export interface StreamOptions {
  principal: Principal;
  encoding: SubscribeOptions["encoding"];
  cursor: FrameCursor;
  /** Frames that follow the cursor's place. */
  frames?: readonly Frame[];
  outflow: Outflow;
  clock: Pick<Clock, "now" | "timer">;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** Bytes in a stream that its reader has not taken. */
const HIGH_WATER_MARK = 32 * 1024;
/** Bytes of a piece of a long frame. */
const PIECE = 16 * 1024;

const PROBE = new TextEncoder().encode(":\n\n");

/** Returns the frames of a cursor as bytes. */
export function frameStream(subscribers: Subscribers, options: StreamOptions): ReadableStream<Uint8Array> {
  const size = ({ byteLength }: Uint8Array) => byteLength;
  return new ReadableStream(new FrameSource(subscribers, options), { highWaterMark: HIGH_WATER_MARK, size });
}

/** The source of a stream: `start`, `pull` and `cancel` are called by `ReadableStream`. */
class FrameSource {
  readonly #listener = (frames: readonly Frame[]) => this.#publish(frames);
  #controller: Controller | undefined;
  /** The pieces of a long frame that are not in the stream yet. */
  #rest: Iterator<Uint8Array> | undefined;
  #isWriting = false;
  #progressAt = 0;
  #writtenAt = 0;
  #stopTimer: (() => void) | undefined;
  #stopSilence: (() => void) | undefined;

  constructor(
    private readonly subscribers: Subscribers,
    private readonly options: StreamOptions,
  ) {}

  start(controller: Controller): void {
    const { cursor, frames = [], principal, encoding } = this.options;
    this.#controller = controller;
    this.subscribers.add(this.#listener, principal.expiresAt);
    this.#attempt(() => {
      if (this.#hasExpired()) return;
      if (encoding === "sse") this.#awaitSilence(SILENCE_MS);
      cursor.offer(frames, this.#take);
      this.#advance();
    });
  }

  pull(): void {
    this.#progressAt = this.options.clock.now();
    this.#attempt(() => this.#advance());
  }

  cancel(): void {
    this.#leave();
  }

  #publish(frames: readonly Frame[]): void {
    const { encoding, cursor } = this.options;
    this.#attempt(() => {
      if (this.#hasExpired()) return;
      // A write fails if the reader has left. Without frames, a comment is the only possible write.
      const isProbe = frames.length === 0 && encoding === "sse" && this.#rest === undefined;
      if (isProbe && this.#room > 0) this.#write(PROBE);
      cursor.offer(frames, this.#take);
      this.#advance();
    });
  }

  #attempt(write: () => void): void {
    // A write may call `pull` before it returns.
    if (this.#isWriting) return;
    this.#isWriting = true;
    try {
      write();
    } catch (error) {
      // The reader has left, and the stream is closed. Otherwise the frames cannot be read: the stream ends.
      this.#leave();
      this.#controller?.error(error);
    } finally {
      this.#isWriting = false;
    }
  }

  /** Fills the stream, and closes it behind its last frame. */
  #advance(): void {
    const { cursor } = this.options;
    this.#writeRest();
    if (this.#rest === undefined && this.#room > 0) cursor.catchUp(this.#take);
    this.#noteHeld();
    if (this.#rest === undefined && cursor.isOver) this.#end(() => this.#controller?.close());
    else if (this.#rest !== undefined || cursor.isBehind) this.#watch();
    else this.#stopWatch();
  }

  readonly #take: Take = (frame) => {
    const { clock, encoding, outflow } = this.options;
    if (this.#rest !== undefined || this.#room <= 0) return false;
    if (!outflow.admits(this, this.#held, Math.min(frame.text.length, PIECE), clock.now())) return false;
    this.#rest = piecesOf(frame.bytes(encoding));
    this.#writeRest();
    this.#noteHeld();
    return true;
  };

  #writeRest(): void {
    while (this.#rest !== undefined && this.#room > 0) {
      const { done, value } = this.#rest.next();
      if (done) this.#rest = undefined;
      else this.#write(value);
    }
  }

  #write(bytes: Uint8Array): void {
    this.#writtenAt = this.options.clock.now();
    if (this.#held === 0) this.#progressAt = this.#writtenAt;
    this.#controller?.enqueue(bytes);
  }

  get #room(): number {
    return this.#controller?.desiredSize ?? 0;
  }

  get #held(): number {
    return Math.max(0, HIGH_WATER_MARK - this.#room);
  }

  #noteHeld(): void {
    const { outflow, clock } = this.options;
    outflow.note(this, this.#held, clock.now());
  }

  /** Looks after the stream again in a moment, while its reader waits. */
  #watch(): void {
    this.#stopTimer ??= this.options.clock.timer(CHECK_MS, () => {
      this.#stopTimer = undefined;
      const held = this.#held;
      if (held > 0 && this.options.clock.now() - this.#progressAt > stallMs(held)) {
        const message = "The reader fell behind; resume from the last sequence number.";
        this.#end(() => this.#controller?.error(new Error(message)));
      } else {
        this.#attempt(() => this.#advance());
      }
    });
  }

  #stopWatch(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #awaitSilence(milliseconds: number): void {
    const { clock } = this.options;
    this.#stopSilence = clock.timer(milliseconds, () =>
      this.#attempt(() => {
        const left = this.#writtenAt + SILENCE_MS - clock.now();
        const isSilent = left <= 0 && this.#rest === undefined && this.#room > 0;
        if (isSilent) this.#write(KEEP_ALIVE);
        this.#awaitSilence(left > 0 ? left : SILENCE_MS);
      }),
    );
  }

  #leave(): void {
    this.#stopWatch();
    this.#stopSilence?.();
    this.subscribers.remove(this.#listener);
    this.options.outflow.note(this, 0, this.options.clock.now());
  }

  #end(close: () => void): void {
    this.#leave();
    close();
  }

  /** Ends the stream if its principal has expired. */
  #hasExpired(): boolean {
    const { principal, clock, encoding } = this.options;
    const now = clock.now();
    if (!hasExpired(principal, now)) return false;
    const message = "Your token has expired. Connect again with a new token and the last `seq`.";
    const error = { code: "UNAUTHENTICATED", message, retriable: false };
    const frame = new FrameText(JSON.stringify(ephemeralFrame("error", error, {}, now)), undefined);
    // A frame of which only a part is sent cannot be followed by another.
    if (this.#rest === undefined) this.#write(frame.bytes(encoding));
    this.#end(() => this.#controller?.close());
    return true;
  }
}

/** Yields the pieces of a frame. All readers share its bytes. */
function* piecesOf(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}
