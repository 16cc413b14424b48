/**
 * Who watches a conversation, and byte streams of its frames.
 *
 * SUB-1  A stream begins with what was missed and continues live, without gap or repetition.
 * SUB-2  A reader that falls behind by more than `MAX_QUEUED_BYTES` is cut off; it resumes from its last `seq`.
 * SUB-3  The stream of a principal ends when that expires, with an `error` that says so.
 */

import type { Clock } from "../../../ports/clock.ts";
import type { SubscribeOptions } from "../../../protocol/conversation-api.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { endsTurn, ephemeralFrame } from "../core/frames.ts";

export type Listener = (frames: readonly Frame[]) => void;

const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

export class Subscribers {
  /** Each with the moment when it expires. */
  readonly #listeners = new Map<Listener, number>();

  /** @param onExpiring is told when a new listener expires, to publish, if only nothing, at that time. */
  constructor(private readonly onExpiring: (at: number) => void) {}

  get size(): number {
    return this.#listeners.size;
  }

  /** When the next listener expires; `Infinity` if none does. */
  get nextExpiry(): number {
    return Math.min(...this.#listeners.values());
  }

  add(listener: Listener, expiresAt = Infinity): void {
    this.#listeners.set(listener, expiresAt);
    if (expiresAt !== Infinity) this.onExpiring(expiresAt);
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /**
   * Tells everyone; told of nothing, those who have expired or left go. A listener that throws must keep neither the
   * others nor a commit's effects waiting.
   */
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

/** A part of what a watcher begins with. Whoever takes the last one must watch from then on, or it misses something. */
export interface OpeningSlice {
  frames: readonly Frame[];
  last: boolean;
}

/** Whose stream it is, and what they want of it. */
export interface StreamOptions {
  principal: Principal;
  encoding: SubscribeOptions["encoding"];
  turnId: string | undefined;
  clock: Pick<Clock, "now">;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/**
 * Frames as bytes: the opening slice by slice as the reader takes it, then live until the end or the reader leaves.
 * With a `turnId` only that turn's frames, to its last.
 */
export function frameStream(
  subscribers: Subscribers,
  opening: Iterator<OpeningSlice, void>,
  { principal, turnId, encoding, clock }: StreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const encode = encoding === "sse" ? encodeSse : encodeNdjson;
  let listener: Listener | null = null;
  const leave = () => {
    if (listener !== null) subscribers.remove(listener);
    listener = null;
  };
  /** Whether the stream goes on. */
  const send = (controller: Controller, frames: readonly Frame[]): boolean => {
    const expired = hasExpired(principal, clock.now());
    const own = turnId === undefined ? frames : frames.filter((frame) => frame.turnId === turnId);
    const end = turnId === undefined ? -1 : own.findIndex(endsTurn);
    const due = expired ? [expiry(clock.now())] : end === -1 ? own : own.slice(0, end + 1);
    // Only who writes learns that a reader has left: where there is nothing to say, events have comments.
    const text =
      due.length === 0 && frames.length === 0 && encoding === "sse" ? ":\n\n" : due.map(encode).join("");
    if (text !== "") controller.enqueue(encoder.encode(text));
    if (end === -1 && !expired) return true;
    leave();
    controller.close();
    return false;
  };
  const watch = (controller: Controller) => {
    listener = (frames) => {
      try {
        if (!send(controller, frames)) return;
      } catch {
        // The reader is gone, and its stream with it.
        leave();
        return;
      }
      if ((controller.desiredSize ?? 0) > -MAX_QUEUED_BYTES) return;
      leave();
      controller.error(new Error("The reader fell behind; resume from the last sequence number."));
    };
    subscribers.add(listener, principal.expiresAt);
  };
  const fill = (controller: Controller) => {
    while (listener === null && (controller.desiredSize ?? 0) > 0) {
      const slice = opening.next();
      if (slice.done) return;
      if (!send(controller, slice.value.frames)) return;
      if (slice.value.last) watch(controller);
    }
  };
  return new ReadableStream<Uint8Array>(
    { start: fill, pull: fill, cancel: leave },
    { highWaterMark: 64 * 1024, size: (chunk) => chunk.byteLength },
  );
}

function expiry(now: number): Frame {
  const message = "Your authority has expired. Come back with a new token and the last number.";
  return ephemeralFrame("error", { code: "UNAUTHENTICATED", message, retriable: false }, {}, now);
}

/** One server-sent event: `id` on durable frames only. */
function encodeSse(frame: Frame): string {
  const id = frame.seq === undefined ? "" : `id: ${frame.seq}\n`;
  return `${id}data: ${JSON.stringify(frame)}\n\n`;
}

function encodeNdjson(frame: Frame): string {
  return `${JSON.stringify(frame)}\n`;
}
