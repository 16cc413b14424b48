/**
 * Follows a conversation or a run as server-sent events.
 *
 * RESUBSCRIBE-1  After a lost stream it resumes with the last number. The caller gets each durable frame once, and no text of a delta twice.
 * RESUBSCRIBE-2  A run is followed in the same way until the server has no further entry.
 */
import type { FrameFilter } from "../protocol/frame-filter.ts";
import type { Frame } from "../protocol/frames.ts";
import { runtimeClock } from "./clock.ts";
import { DramatisClientError } from "./errors.ts";
import { framesIn } from "./event-stream.ts";
import { waitAfterLoss } from "./reconnect.ts";

/** The start of a stream, and its filter. */
export interface FollowOptions extends FrameFilter {
  /** Continues after this entry. Without it, the first frame is a snapshot. */
  from?: number;
  /** Ends the stream with the reason of the signal. */
  signal?: AbortSignal;
}

/** The start of a stream of a run. */
export interface FollowRunOptions extends Pick<FollowOptions, "from" | "signal"> {
  /** Called when a connection opens, and with `false` when it is lost. */
  onConnection?: (isOpen: boolean) => void;
}

interface Item {
  type: string;
  seq?: number;
}

/** Yields the frames of the streams that `open` returns. Throws an error of a request that cannot succeed later. */
export async function* follow(
  open: (from: number | undefined) => Promise<Response>,
  options: Pick<FollowOptions, "from" | "signal">,
): AsyncGenerator<Frame, void> {
  const lengths = new Map<string, number>();
  const stream = async (from: number | undefined) => framesIn(await open(from), options.signal);
  for await (const frame of resumed<Frame>(stream, options)) {
    const next = missing(frame, lengths);
    if (next !== null) yield next;
  }
}

/**
 * Yields the items of the streams that `open` returns, each stream after the last number. Ends if `open` returns `null`. Throws an error
 * of a request that cannot succeed later.
 */
export async function* resumed<T extends Item>(
  open: (from: number | undefined) => Promise<AsyncIterable<T> | null>,
  { from, signal, onConnection }: FollowRunOptions,
): AsyncGenerator<T, void> {
  let [seq, lostAt, wait] = [from, 0, 0];
  for (;;) {
    try {
      const items = await open(seq);
      if (items === null) return;
      onConnection?.(true);
      for await (const item of items) {
        // The server ends the stream after this error. The next request gets its status.
        if (item.type === "error" && item.seq === undefined) break;
        lostAt = 0;
        if (item.seq !== undefined) seq = item.seq;
        yield item;
      }
      wait = 0;
    } catch (error) {
      const isPassing = error instanceof DramatisClientError && error.retriable && signal?.aborted !== true;
      if (!isPassing) throw error;
      wait = error.retryAfter ?? 0;
    }
    onConnection?.(false);
    const now = runtimeClock.now();
    lostAt ||= now;
    await pause(Math.max(wait, waitAfterLoss(now - lostAt, Math.random())), signal);
  }
}

/** Returns the part of a frame that the caller has not got. `lengths`: of the texts in progress, by the ids of their messages. */
function missing(frame: Frame, lengths: Map<string, number>): Frame | null {
  const { messageId = "" } = frame;
  if (frame.type === "snapshot") {
    lengths.clear();
    for (const partial of frame.data.partials) lengths.set(partial.messageId, partial.text.length);
  }
  if (frame.type === "message.reset" || frame.type === "message.completed") lengths.delete(messageId);
  if (frame.type !== "message.delta") return frame;
  const { offset, text } = frame.data;
  const known = lengths.get(messageId) ?? 0;
  const rest = text.slice(Math.max(0, known - offset));
  if (rest === "") return null;
  lengths.set(messageId, offset + text.length);
  return { ...frame, data: { offset: Math.max(offset, known), text: rest } };
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      stop();
      reject(signal?.reason);
    };
    const stop = runtimeClock.timer(milliseconds, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
  });
}
