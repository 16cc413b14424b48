/**
 * The text of messages in progress. Deltas are coalesced: one frame has all the text of an interval, and waiting text is
 * published before anything durable.
 *
 * DELTA-1  The pieces sent for a message, joined, are a prefix of its text; offsets count UTF-16 units.
 * DELTA-2  A surrogate pair is never split between two pieces.
 */

import type { Clock } from "../../../ports/clock.ts";
import type { Frame } from "../../../protocol/frames.ts";
import type { Snapshot } from "../../../protocol/views.ts";
import { ephemeralFrame } from "../core/frames.ts";

/** Milliseconds of text in one delta frame. */
const INTERVAL_MS = 40;

interface LiveText {
  turnId: string;
  text: string;
  /** Length of the text that was published. */
  sent: number;
}

export class DeltaBuffer {
  /** By message id. */
  readonly #live = new Map<string, LiveText>();
  #cancelTimer: (() => void) | null = null;

  constructor(private readonly ports: { clock: Clock; publish: (frames: Frame[]) => void }) {}

  append(turnId: string, messageId: string, text: string): void {
    const live = this.#live.get(messageId);
    if (live === undefined) this.#live.set(messageId, { turnId, text, sent: 0 });
    else live.text += text;
    this.#cancelTimer ??= this.ports.clock.timer(INTERVAL_MS, () => this.flush());
  }

  /** Publishes the waiting text. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const frames: Frame[] = [];
    for (const [messageId, live] of this.#live) {
      const end = wholeLength(live.text);
      if (end <= live.sent) continue;
      frames.push(this.#frame(live.sent, live.text.slice(live.sent, end), live.turnId, messageId));
      live.sent = end;
    }
    if (frames.length > 0) this.ports.publish(frames);
  }

  /** Publishes the waiting text, then durable frames. Forgets the text of messages that these complete, reset or fail. */
  publish(frames: Frame[]): void {
    this.flush();
    for (const { type, turnId, messageId } of frames) {
      if (type === "message.completed" || type === "message.reset") this.#live.delete(messageId ?? "");
      if (type !== "turn.failed") continue;
      for (const [id, live] of this.#live) if (live.turnId === turnId) this.#live.delete(id);
    }
    this.ports.publish(frames);
  }

  /** Returns the published text of every message in progress. Call `flush` first. */
  partials(): Snapshot["partials"] {
    return [...this.#live].map(([messageId, { turnId, text, sent }]) => ({
      messageId,
      turnId,
      text: text.slice(0, sent),
    }));
  }

  /** Returns the partial texts as frames. Call `flush` first. */
  partialFrames(): Frame[] {
    return this.partials().map(({ turnId, messageId, text }) => this.#frame(0, text, turnId, messageId));
  }

  #frame(offset: number, text: string, turnId: string, messageId: string): Frame {
    return ephemeralFrame("message.delta", { offset, text }, { turnId, messageId }, this.ports.clock.now());
  }
}

/** Returns the length of a text without a high surrogate at its end. */
function wholeLength(text: string): number {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
}
