/**
 * Subscribers of a conversation, and byte streams of its frames.
 *
 * SUB-1  A stream begins with the frames that were missed and continues live, without gap or repetition.
 * SUB-2  A reader that falls behind by more than `MAX_QUEUED_BYTES` is cut off; it resumes from its last `seq`.
 * SUB-3  The stream of a principal ends when that expires, with an `error` that says so.
 */

import type { Clock } from "../../../ports/clock.ts";
import type { SubscribeOptions } from "../../../protocol/conversation-api.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { endsTurn } from "../../../protocol/frames.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { ephemeralFrame } from "../core/frames.ts";
import type { OpeningSlice } from "../reads/opening.ts";
import { MAX_SUBSCRIBERS } from "./limits.ts";

export type Listener = (frames: readonly Frame[]) => void;

/** Bytes in a stream that its reader takes without delay. */
const HIGH_WATER_MARK = 64 * 1024;
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

export class Subscribers {
  /** Listeners with the time of their expiry. */
  readonly #listeners = new Map<Listener, number>();

  /** `onExpiring` gets a new listener's expiry. Publish at expiry, even an empty batch, so that the listener ends. */
  constructor(private readonly onExpiring: (at: number) => void) {}

  /** The next expiry; `Infinity` if no listener expires. */
  get nextExpiry(): number {
    return Math.min(...this.#listeners.values());
  }

  /** Throws `RATE_LIMITED` if there are `MAX_SUBSCRIBERS` streams, beside the listener that serves all WebSockets. */
  checkRoom(): void {
    if (this.#listeners.size <= MAX_SUBSCRIBERS) return;
    // Streams whose readers have left end now.
    this.publish([]);
    throw tooManySubscribers();
  }

  add(listener: Listener, expiresAt = Infinity): void {
    this.#listeners.set(listener, expiresAt);
    if (expiresAt !== Infinity) this.onExpiring(expiresAt);
  }

  /** Collects the frames that are published while `body` runs, which gets the growing list. */
  async collect<Value>(body: (frames: readonly Frame[]) => Promise<Value>): Promise<Value> {
    const frames: Frame[] = [];
    const listener: Listener = (published) => frames.push(...published);
    this.add(listener);
    try {
      return await body(frames);
    } finally {
      this.remove(listener);
    }
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /** Calls every listener. One that throws delays neither the others nor the effects of a commit. */
  publish(frames: readonly Frame[]): void {
    for (const listener of this.#listeners.keys()) {
      try {
        listener(frames);
      } catch (error) {
        console.error(error);
      }
    }
  }
}

/** Returns the error for one more subscriber than `MAX_SUBSCRIBERS`. */
export function tooManySubscribers(): DramatisError {
  const message = `At most ${MAX_SUBSCRIBERS} subscribers may follow a conversation at once; try again later.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true });
}

export interface StreamOptions {
  principal: Principal;
  encoding: SubscribeOptions["encoding"];
  /** Only this turn's frames, to its last. */
  turnId: string | undefined;
  clock: Pick<Clock, "now">;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** Returns frames as bytes: the opening, slice by slice as the reader takes it, then live frames. */
export function frameStream(
  subscribers: Subscribers,
  opening: Iterable<OpeningSlice>,
  options: StreamOptions,
): ReadableStream<Uint8Array> {
  const source = new FrameSource(subscribers, opening[Symbol.iterator](), options);
  return new ReadableStream<Uint8Array>(source, {
    highWaterMark: HIGH_WATER_MARK,
    size: ({ byteLength }) => byteLength,
  });
}

/** The source of a stream: `start`, `pull` and `cancel` are called by `ReadableStream`. */
class FrameSource {
  readonly #encoder = new TextEncoder();
  /** Set once the opening is sent. */
  #listener: Listener | undefined;

  constructor(
    private readonly subscribers: Subscribers,
    private readonly opening: Iterator<OpeningSlice>,
    private readonly options: StreamOptions,
  ) {}

  start(controller: Controller): void {
    this.pull(controller);
  }

  /** Sends slices of the opening while the reader has room. Subscribes in the same moment as it takes the last slice. */
  pull(controller: Controller): void {
    while (this.#listener === undefined && (controller.desiredSize ?? 0) > 0) {
      const { done, value } = this.opening.next();
      if (done || !this.#send(controller, value.frames)) return;
      if (value.last) this.#subscribe(controller);
    }
  }

  cancel(): void {
    if (this.#listener !== undefined) this.subscribers.remove(this.#listener);
  }

  #subscribe(controller: Controller): void {
    this.#listener = (frames) => {
      try {
        if (!this.#send(controller, frames)) return;
      } catch {
        // The reader has left, and the stream is closed.
        this.cancel();
        return;
      }
      if ((controller.desiredSize ?? 0) > -MAX_QUEUED_BYTES) return;
      this.cancel();
      controller.error(new Error("The reader fell behind; resume from the last sequence number."));
    };
    this.subscribers.add(this.#listener, this.options.principal.expiresAt);
  }

  /** Sends frames, and closes the stream behind its last one. Returns whether the stream goes on. */
  #send(controller: Controller, frames: readonly Frame[]): boolean {
    const { principal, turnId, encoding, clock } = this.options;
    const now = clock.now();
    const isExpired = hasExpired(principal, now);
    const own = turnId === undefined ? frames : framesOfTurn(frames, turnId);
    const due = isExpired ? [expiryFrame(now)] : own;
    const encode = encoding === "sse" ? encodeSse : encodeNdjson;
    // A write fails if the reader has left. Without frames, a comment is the only possible write.
    const isProbe = encoding === "sse" && frames.length === 0 && due.length === 0;
    const text = isProbe ? ":\n\n" : due.map(encode).join("");
    if (text !== "") controller.enqueue(this.#encoder.encode(text));
    if (!isExpired && (turnId === undefined || !own.some(endsTurn))) return true;
    this.cancel();
    controller.close();
    return false;
  }
}

/** Returns a turn's frames, up to the one that ends it. */
function framesOfTurn(frames: readonly Frame[], turnId: string): readonly Frame[] {
  const own = frames.filter((frame) => frame.turnId === turnId);
  const end = own.findIndex(endsTurn);
  return end === -1 ? own : own.slice(0, end + 1);
}

function expiryFrame(now: number): Frame {
  const message = "Your token has expired. Connect again with a new token and the last `seq`.";
  return ephemeralFrame("error", { code: "UNAUTHENTICATED", message, retriable: false }, {}, now);
}

/** Returns one server-sent event; only durable frames have an `id`. */
function encodeSse(frame: Frame): string {
  const id = frame.seq === undefined ? "" : `id: ${frame.seq}\n`;
  return `${id}data: ${JSON.stringify(frame)}\n\n`;
}

function encodeNdjson(frame: Frame): string {
  return `${JSON.stringify(frame)}\n`;
}
