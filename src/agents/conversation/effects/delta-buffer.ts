/**
 * The live text of messages in progress. Deltas are coalesced: a client gets one frame for all the text that came in an
 * interval, and what is still waiting goes out before anything durable does.
 *
 * DELTA-1  The pieces sent for a message, joined, are a prefix of its text; offsets count UTF-16 units.
 * DELTA-2  A surrogate pair is never split between two pieces.
 */

import type { Clock } from "../../../ports/clock.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { ephemeralFrame } from "../core/frames.ts";

/** Milliseconds of text in one delta frame. */
const INTERVAL_MS = 40;

interface Live {
  turnId: string;
  text: string;
  sent: number;
}

export class DeltaBuffer {
  readonly #live = new Map<string, Live>();
  #cancelTimer: (() => void) | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly publish: (frames: Frame[]) => void,
  ) {}

  append(turnId: string, messageId: string, text: string): void {
    const live = this.#live.get(messageId);
    if (live === undefined) this.#live.set(messageId, { turnId, text, sent: 0 });
    else live.text += text;
    this.#arm();
  }

  /** Sends what is waiting. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const frames: Frame[] = [];
    for (const [messageId, live] of this.#live) {
      const end = wholeLength(live.text);
      if (end <= live.sent) continue;
      const data = { offset: live.sent, text: live.text.slice(live.sent, end) };
      const ids = { turnId: live.turnId, messageId };
      frames.push(ephemeralFrame("message.delta", data, ids, this.clock.now()));
      live.sent = end;
    }
    if (frames.length > 0) this.publish(frames);
  }

  /** Forgets a message's text: it was completed, or it is being made again. */
  drop(messageId: string): void {
    this.#live.delete(messageId);
  }

  /** The text so far of every message in progress, as already sent. Call `flush` first. */
  partials(): { messageId: string; turnId: string; text: string }[] {
    return [...this.#live].map(([messageId, { turnId, text, sent }]) => ({
      messageId,
      turnId,
      text: text.slice(0, sent),
    }));
  }

  #arm(): void {
    this.#cancelTimer ??= this.clock.timer(INTERVAL_MS, () => this.flush());
  }
}

/** The length of `text` without a high surrogate that still waits for its other half. */
function wholeLength(text: string): number {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
}
