/** Parses the server-sent events of a response into the texts of their `data`. */
import { createParser } from "eventsource-parser";
import { ModelFailure } from "../errors/model-errors.ts";
import { DONE } from "../formats/common/decoder.ts";
import type { AttemptWatch } from "./ports.ts";
import { BodyReader } from "./stream-reader.ts";

/** Maximum size of a reply on the wire, in bytes. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
const MAX_EVENT_LENGTH = 4 * 1024 * 1024;

/**
 * Yields the payloads in batches as they arrive, up to and including `[DONE]`. Reading stops there, because some servers
 * leave the connection open. At the end of the body an event without its closing blank line is yielded too; an incomplete
 * payload then fails to parse.
 */
export function eventData(body: ReadableStream<Uint8Array>, attempt: AttemptWatch): AsyncIterable<string[]> {
  return new EventBatches(new BodyReader(body, attempt, MAX_REPLY_BYTES));
}

/** Written by hand: a generator would cost as much for each event as reading it. */
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
        const { done, value } = await this.reader.next();
        if (done) this.#close();
        this.#parser.feed(
          done ? `${this.#decoder.decode()}\n\n` : this.#decoder.decode(value, { stream: true }),
        );
        const batch = this.#arrived;
        if (batch.length === 0) continue;
        this.#arrived = [];
        const end = batch.indexOf(DONE);
        if (end === -1) return { done: false, value: batch };
        this.#close();
        return { done: false, value: batch.slice(0, end + 1) };
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
