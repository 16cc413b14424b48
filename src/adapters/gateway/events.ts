/** Server-sent events of a body, as the texts of their `data`. */
import { createParser } from "eventsource-parser";
import { DONE } from "../chat-stream.ts";
import { ModelFailure } from "../errors.ts";
import { BodyReader } from "./bytes.ts";
import type { AttemptDeadlines } from "./deadlines.ts";

/** A reply may have this many bytes on the wire. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
const MAX_EVENT_LENGTH = 4 * 1024 * 1024;

/**
 * Yields the payloads as they arrive, those that arrive together at once, up to `[DONE]`, after which nothing is read: some
 * servers leave the connection open. An event that the end of the body cuts off is yielded as far as it came, so that a
 * last event without its blank line is not lost; a payload that is incomplete fails to parse.
 */
export async function* eventData(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  deadlines?: AttemptDeadlines,
): AsyncGenerator<string[]> {
  const arrived: string[] = [];
  let failure: ModelFailure | undefined;
  const parser = createParser({
    maxBufferSize: MAX_EVENT_LENGTH,
    onEvent: ({ data }) => arrived.push(data),
    onError: ({ type }) => {
      if (type !== "max-buffer-size-exceeded") return;
      failure = new ModelFailure("validation", "The model sent an event that is too large.");
    },
  });
  const decoder = new TextDecoder();
  const reader = new BodyReader(body, signal, MAX_REPLY_BYTES, deadlines);
  try {
    for (let bytes = await reader.next(); bytes !== undefined; bytes = await reader.next()) {
      parser.feed(decoder.decode(bytes, { stream: true }));
      const batch = arrived.splice(0);
      const done = batch.indexOf(DONE);
      if (batch.length > 0) yield done === -1 ? batch : batch.slice(0, done + 1);
      if (done !== -1) return;
      if (failure !== undefined) throw failure;
    }
  } finally {
    reader.close();
  }
  parser.feed(`${decoder.decode()}\n\n`);
  if (arrived.length > 0) yield arrived;
}
