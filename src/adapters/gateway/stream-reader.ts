/**
 * Reads the stream of a response within the limits of its attempt.
 *
 * BYTES-1  The stream is cancelled when reading ends early for any reason, so no connection stays open.
 * BYTES-2  An abort ends a pending read, with the signal's reason.
 */
import { cut } from "../../shared/text.ts";
import { ModelFailure } from "../errors/model-errors.ts";
import type { AttemptWatch } from "./ports.ts";

/** Iterates over the pieces of a stream. Written by hand: a generator would cost as much as reading. */
export class StreamReader<Piece> implements AsyncIterableIterator<Piece, undefined> {
  readonly #reader: ReadableStreamDefaultReader<Piece>;
  readonly #cancel = () => void this.#reader.cancel().catch(() => undefined);

  constructor(
    stream: ReadableStream<Piece>,
    protected readonly attempt: AttemptWatch,
  ) {
    this.#reader = stream.getReader();
    attempt.signal.addEventListener("abort", this.#cancel, { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Piece, undefined>> {
    const { attempt } = this;
    try {
      attempt.signal.throwIfAborted();
      const reading = this.#reader.read();
      attempt.waiting();
      const result = await reading;
      // Cancelling resolves a pending read like the end of the stream.
      attempt.signal.throwIfAborted();
      attempt.received();
      if (result.done) return await this.return();
      this.check(result.value);
      return result;
    } catch (error) {
      this.close();
      attempt.signal.throwIfAborted();
      throw this.failure(error);
    }
  }

  async return(): Promise<IteratorResult<Piece, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  close(): void {
    this.attempt.signal.removeEventListener("abort", this.#cancel);
    this.#cancel();
  }

  /** Throws for a piece that is not acceptable. */
  protected check(_piece: Piece): void {}

  /** Returns the error to throw when reading failed. */
  protected failure(error: unknown): unknown {
    return error;
  }
}

/** Iterates over the chunks of a body of at most `limit` bytes. */
export class BodyReader extends StreamReader<Uint8Array> {
  #total = 0;

  constructor(
    body: ReadableStream<Uint8Array>,
    attempt: AttemptWatch,
    private readonly limit: number,
  ) {
    super(body, attempt);
  }

  protected override check({ byteLength }: Uint8Array): void {
    this.#total += byteLength;
    if (this.#total > this.limit) throw tooLarge(this.limit);
  }

  protected override failure(error: unknown): unknown {
    if (error instanceof ModelFailure) return error;
    return new ModelFailure("network", `The connection to the model broke: ${reasonOf(error)}.`);
  }
}

export function tooLarge(limit: number): ModelFailure {
  return new ModelFailure("validation", `The reply is larger than ${limit} bytes.`);
}

export async function readText(
  body: ReadableStream<Uint8Array>,
  attempt: AttemptWatch,
  limit: number,
): Promise<string> {
  let text = "";
  for await (const piece of decoded(body, attempt, limit)) text += piece;
  return text;
}

/** Returns at most `length` characters of a body: what arrived before its end, or before a failure. */
export async function readBeginning(
  body: ReadableStream<Uint8Array>,
  attempt: AttemptWatch,
  length: number,
): Promise<string> {
  let text = "";
  try {
    for await (const piece of decoded(body, attempt, Number.POSITIVE_INFINITY)) {
      text += piece;
      if (text.length >= length) break;
    }
  } catch {
    attempt.signal.throwIfAborted();
  }
  return cut(text, length);
}

async function* decoded(
  body: ReadableStream<Uint8Array>,
  attempt: AttemptWatch,
  limit: number,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const bytes of new BodyReader(body, attempt, limit))
    yield decoder.decode(bytes, { stream: true });
  yield decoder.decode();
}

/** Describes why a connection failed, shortly and without a full stop. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  const text = "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
  return text.replace(/\.+$/, "");
}
