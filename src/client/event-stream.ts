/** Readers of server-sent events: frames, and events of a log. */
import { createParser } from "eventsource-parser";
import type { LoggedEvent } from "../protocol/event-log.ts";
import { endsTurn, type Frame, isOfOtherVersion, parseFrame } from "../protocol/frames.ts";
import type { RunEvent } from "../protocol/run-schemas.ts";
import { DramatisClientError, otherVersion, streamInterrupted } from "./errors.ts";

/** Yields the frames of a response up to the end of its turn. Leaving the loop releases the connection. */
export async function* framesOfTurn(response: Response, signal?: AbortSignal): AsyncGenerator<Frame, void> {
  for await (const frame of framesIn(response, signal)) {
    yield frame;
    if (endsTurn(frame)) return;
  }
  throw streamInterrupted();
}

/** Yields the frames of a response until it ends. Leaving the loop releases the connection. */
export function framesIn(response: Response, signal?: AbortSignal): AsyncGenerator<Frame, void> {
  return itemsIn(response, frameOf, signal);
}

/** Yields the events of a log, or of a run, until the response ends. Leaving the loop releases the connection. */
export function eventsIn<Event extends LoggedEvent | RunEvent>(
  response: Response,
  signal?: AbortSignal,
): AsyncGenerator<Event, void> {
  return itemsIn(response, eventOf<Event>, signal);
}

function frameOf(data: string): Frame | null {
  const frame = parseFrame(data);
  if (frame === null && isOfOtherVersion(data)) throw otherVersion();
  return frame;
}

/** Returns `null` for the error before the end of a stream. */
function eventOf<Event extends { seq: number }>(data: string): Event | null {
  // SAFETY: the same definitions type the server's events.
  const event = JSON.parse(data) as Event | { seq?: undefined };
  return event.seq === undefined ? null : event;
}

/** Yields what `read` returns for the data of each event, except `null`. Leaving the loop releases the connection. */
async function* itemsIn<Item>(
  response: Response,
  read: (data: string) => Item | null,
  signal: AbortSignal | undefined,
): AsyncGenerator<Item, void> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const ready: Item[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      const item = read(data);
      if (item !== null) ready.push(item);
    },
  });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* ready.splice(0);
    }
  } catch (cause) {
    if (cause instanceof DramatisClientError || signal?.aborted === true) throw cause;
    throw streamInterrupted(cause);
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
