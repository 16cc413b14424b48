/**
 * Who watches a conversation, and byte streams of its frames.
 *
 * SUB-1  A stream begins with what was missed and continues live, without gap or repetition.
 * SUB-2  A reader that falls behind by more than `MAX_QUEUED_BYTES` is cut off; it resumes from its last `seq`.
 */
import type { Frame } from "../../client/protocol.ts";
import type { SubscribeOptions } from "./api.ts";
import { endsTurn } from "./frames.ts";

export type Listener = (frames: readonly Frame[]) => void;

const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

export class Subscribers {
  readonly #listeners = new Set<Listener>();

  add(listener: Listener): void {
    this.#listeners.add(listener);
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  publish(frames: readonly Frame[]): void {
    for (const listener of this.#listeners) listener(frames);
  }
}

/** Where a stream gets what came before it. */
export interface Backlog {
  /** The next slice of frames; `done` on the last. Called as the reader takes them. */
  next(): { frames: Frame[]; done: boolean };
}

/** Frames as bytes: the backlog slice by slice as the reader takes it, then live until the end or the reader leaves. */
export function frameStream(
  subscribers: Subscribers,
  backlog: Backlog,
  { turnId, encoding }: Pick<SubscribeOptions, "turnId" | "encoding">,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const encode = encoding === "sse" ? encodeSse : encodeNdjson;
  let live = false;
  let listener: Listener | null = null;
  const leave = () => {
    if (listener !== null) subscribers.remove(listener);
    listener = null;
  };
  /** Whether the stream goes on. */
  const send = (
    controller: ReadableStreamDefaultController<Uint8Array>,
    frames: readonly Frame[],
  ): boolean => {
    const own = frames.filter((frame) => turnId === undefined || frame.turnId === turnId);
    const end = turnId === undefined ? -1 : own.findIndex(endsTurn);
    const text = (end === -1 ? own : own.slice(0, end + 1)).map(encode).join("");
    if (text !== "") controller.enqueue(encoder.encode(text));
    if (end === -1) return true;
    leave();
    controller.close();
    return false;
  };
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        while (!live && (controller.desiredSize ?? 0) > 0) {
          const { frames, done } = backlog.next();
          if (!send(controller, frames)) return;
          if (!done) continue;
          live = true;
          listener = (next) => {
            if (!send(controller, next)) return;
            if ((controller.desiredSize ?? 0) > -MAX_QUEUED_BYTES) return;
            leave();
            controller.error(new Error("The reader fell behind; resume from the last sequence number."));
          };
          subscribers.add(listener);
        }
      },
      cancel: leave,
    },
    { highWaterMark: 64 * 1024, size: (chunk) => chunk.byteLength },
  );
}

/** One server-sent event: `id` on durable frames only. */
function encodeSse(frame: Frame): string {
  const id = frame.seq === undefined ? "" : `id: ${frame.seq}\n`;
  return `${id}data: ${JSON.stringify(frame)}\n\n`;
}

function encodeNdjson(frame: Frame): string {
  return `${JSON.stringify(frame)}\n`;
}
