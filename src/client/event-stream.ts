/** Reader of frames from server-sent events. */

import { createParser } from "eventsource-parser";
import { endsTurn, type Frame, isOfOtherVersion, parseFrame } from "../protocol/frames.ts";
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
export async function* framesIn(response: Response, signal?: AbortSignal): AsyncGenerator<Frame, void> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const ready: Frame[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      const frame = parseFrame(data);
      if (frame !== null) ready.push(frame);
      else if (isOfOtherVersion(data)) throw otherVersion();
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
