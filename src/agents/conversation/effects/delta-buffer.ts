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
import { defined } from "../../../shared/defined.ts";
import { cut, wholeLength } from "../../../shared/text.ts";
import { ephemeralFrame } from "../core/frames.ts";

/** Milliseconds of text in one delta frame. */
const INTERVAL_MS = 40;
/** Length of the text in one delta frame, in UTF-16 units. */
const MAX_PIECE = 16 * 1024;

interface LiveText {
  turnId: string;
  /** The published frames. One string of their text would be copied with each new piece. */
  pieces: DeltaFrame[];
  /** Length of the published text. */
  sent: number;
  waiting: string;
}

type DeltaFrame = Extract<Frame, { type: "message.delta" }>;

export class DeltaBuffer {
  /** By message id. */
  readonly #live = new Map<string, LiveText>();
  #cancelTimer: (() => void) | null = null;

  constructor(private readonly ports: { clock: Clock; publish: (frames: Frame[]) => void }) {}

  append(turnId: string, messageId: string, text: string): void {
    const live = this.#live.get(messageId);
    if (live === undefined) this.#live.set(messageId, { turnId, pieces: [], sent: 0, waiting: text });
    else live.waiting += text;
    this.#cancelTimer ??= this.ports.clock.timer(INTERVAL_MS, () => this.flush());
  }

  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const frames: Frame[] = [];
    for (const [messageId, live] of this.#live) {
      const { turnId, waiting, pieces } = live;
      const whole = wholeLength(waiting, waiting.length);
      for (let at = 0; at < whole; ) {
        const end = wholeLength(waiting, Math.min(whole, at + MAX_PIECE));
        const piece = this.#frame(live.sent, waiting.slice(at, end), { turnId, messageId });
        pieces.push(piece);
        frames.push(piece);
        live.sent += end - at;
        at = end;
      }
      live.waiting = waiting.slice(whole);
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

  /** Returns the published text of every message in progress. All texts together have at most `limit` units. */
  partials(limit = Infinity): Snapshot["partials"] {
    let left = limit;
    return [...this.#live].map(([messageId, { turnId, pieces }]) => {
      let text = "";
      for (const { data } of pieces) {
        if (text.length >= left) break;
        text += data.text;
      }
      text = cut(text, left);
      left -= text.length;
      return { messageId, turnId, text };
    });
  }

  /** Returns the whole text of a message in progress, including unpublished text; `undefined` for another message. */
  textOf(messageId: string): string {
    const { pieces, waiting } = this.#live.get(messageId) ?? { pieces: [], waiting: "" };
    const text = pieces.map(({ data }) => data.text).join("") + waiting;
    return cut(text, text.length);
  }

  /** Returns the messages in progress, with the length of their published text. */
  lengths(): { messageId: string; turnId: string; length: number }[] {
    return [...this.#live].map(([messageId, { turnId, sent }]) => ({ messageId, turnId, length: sent }));
  }

  /** Returns a frame of the published text of a message from an offset on; `undefined` at its end. */
  piece(messageId: string, offset: number): DeltaFrame | undefined {
    const { pieces, sent } = this.#live.get(messageId) ?? { pieces: [], sent: 0 };
    if (offset >= sent) return undefined;
    const piece = pieces.findLast(({ data }) => data.offset <= offset);
    if (piece === undefined || piece.data.offset === offset) return piece;
    const { data, turnId, messageId: id } = piece;
    return this.#frame(offset, data.text.slice(offset - data.offset), {
      ...defined({ turnId, messageId: id }),
    });
  }

  #frame(offset: number, text: string, ids: { turnId?: string; messageId?: string }): DeltaFrame {
    const frame = ephemeralFrame("message.delta", { offset, text }, ids, this.ports.clock.now());
    // SAFETY: the frame has the type that this call passes.
    return frame as DeltaFrame;
  }
}
