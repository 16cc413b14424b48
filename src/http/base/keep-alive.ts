/**
 * Keep-alive comments in streams of server-sent events.
 *
 * ALIVE-1  After `SILENCE_MS` without bytes a stream gets a comment, which its reader skips. So no proxy cuts the stream
 *          while a model thinks or a tool runs. Comments come between events only.
 */
import type { Clock } from "../../ports/clock.ts";
import { KEEP_ALIVE, SILENCE_MS } from "../../protocol/event-stream.ts";

const NEWLINE = 0x0a;

/** Returns the same bytes, read on demand, with a comment after each silence. */
export function keepAlive(
  events: ReadableStream<Uint8Array>,
  clock: Pick<Clock, "timer">,
): ReadableStream<Uint8Array> {
  const reader = events.getReader();
  let next: ReturnType<typeof reader.read> | null = null;
  let newlines = 2;
  let isLeft = false;
  let stopTimer = () => {};
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          next ??= reader.read();
          const silence = new Promise<null>((resolve) => {
            stopTimer = clock.timer(SILENCE_MS, () => resolve(null));
          });
          const read = await Promise.race([next, silence]).finally(() => stopTimer());
          if (isLeft) return;
          if (read === null && newlines < 2) continue;
          if (read === null) return controller.enqueue(KEEP_ALIVE);
          next = null;
          if (read.done) return controller.close();
          newlines = newlinesAtEnd(read.value, newlines);
          return controller.enqueue(read.value);
        }
      },
      async cancel(reason) {
        isLeft = true;
        stopTimer();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Counts the newlines at the end of the stream so far; `before` is the count before these bytes. */
function newlinesAtEnd(bytes: Uint8Array, before: number): number {
  const other = bytes.findLastIndex((byte) => byte !== NEWLINE);
  return other === -1 ? before + bytes.length : bytes.length - 1 - other;
}
