/** Server-sent events of a body, as the texts of their `data`. */
import { createParser } from "eventsource-parser";
import { ModelFailure } from "../errors/model-errors.ts";
import { DONE } from "../formats/common/decoder.ts";
import { BodyReader } from "./bytes.ts";
import type { AttemptDeadlines } from "./deadlines.ts";

/** A reply may have this many bytes on the wire. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
const MAX_EVENT_LENGTH = 4 * 1024 * 1024;

/**
 * The payloads as they arrive, those that arrive together at once, up to `[DONE]`, after which nothing is read: some
 * servers leave the connection open. An event that the end of the body cuts off is given as far as it came, so that a
 * last event without its blank line is not lost; a payload that is incomplete fails to parse.
 */
export function eventData(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  deadlines?: AttemptDeadlines,
): AsyncIterable<string[]> {
  return new EventBatches(new BodyReader(body, signal, MAX_REPLY_BYTES, deadlines));
}

/** An iterator by hand: a generator would take as long for each event as reading it does. */
class EventBatches implements AsyncIterableIterator<string[], undefined> {
  readonly #decoder = new TextDecoder();
  readonly #parser = createParser({
    maxBufferSize: MAX_EVENT_LENGTH,
    onEvent: ({ data }) => this.#arrived.push(data),
    onError: ({ type }) => {
      if (type !== "max-buffer-size-exceeded") return;
      this.#failure = new ModelFailure("validation", "The model sent an event that is too large.");
    },
  });
  #arrived: string[] = [];
  #failure: ModelFailure | undefined;
  #isOver = false;

  constructor(private readonly reader: BodyReader) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string[], undefined>> {
    try {
      while (!this.#isOver) {
        if (this.#failure !== undefined) throw this.#failure;
        const bytes = await this.reader.next();
        if (bytes === undefined) this.#close();
        this.#parser.feed(
          bytes === undefined
            ? `${this.#decoder.decode()}\n\n`
            : this.#decoder.decode(bytes, { stream: true }),
        );
        const batch = this.#arrived;
        if (batch.length === 0) continue;
        this.#arrived = [];
        const done = batch.indexOf(DONE);
        if (done === -1) return { done: false, value: batch };
        this.#close();
        return { done: false, value: batch.slice(0, done + 1) };
      }
      return { done: true, value: undefined };
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<string[], undefined>> {
    this.#close();
    return { done: true, value: undefined };
  }

  #close(): void {
    this.#isOver = true;
    this.reader.close();
  }
}
