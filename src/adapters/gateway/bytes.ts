/**
 * Reads a response's body within bounds.
 *
 * BYTES-1  The body is cancelled when reading ends early, for whatever reason, so no connection is left behind.
 * BYTES-2  An abort ends a read that hangs; the signal's reason is thrown.
 */
import { ModelFailure } from "../errors/model-errors.ts";
import type { AttemptDeadlines } from "./deadlines.ts";

/** The chunks of a body, one after the other. Close it when you are done, however that comes. */
export class BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #cancel = () => void this.#reader.cancel().catch(() => undefined);
  #total = 0;

  /** More than `limit` bytes are a failure. `deadlines` hears of each chunk. */
  constructor(
    body: ReadableStream<Uint8Array>,
    private readonly signal: AbortSignal,
    private readonly limit: number,
    private readonly deadlines?: AttemptDeadlines,
  ) {
    this.#reader = body.getReader();
    signal.addEventListener("abort", this.#cancel, { once: true });
  }

  /** `undefined` at the end. */
  async next(): Promise<Uint8Array | undefined> {
    const { signal, limit, deadlines } = this;
    signal.throwIfAborted();
    let result: ReadableStreamReadResult<Uint8Array>;
    try {
      const reading = this.#reader.read();
      deadlines?.waits();
      result = await reading;
    } catch (error) {
      signal.throwIfAborted();
      throw new ModelFailure("network", `The connection to the model broke: ${reasonOf(error)}.`);
    }
    // Cancelling makes a waiting read resolve as if the body had ended.
    signal.throwIfAborted();
    deadlines?.heard();
    if (result.done) return undefined;
    this.#total += result.value.byteLength;
    if (this.#total > limit) throw new ModelFailure("validation", `The reply is larger than ${limit} bytes.`);
    return result.value;
  }

  close(): void {
    this.signal.removeEventListener("abort", this.#cancel);
    this.#cancel();
  }
}

/** The whole body as text. */
export async function readText(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  limit: number,
  deadlines?: AttemptDeadlines,
): Promise<string> {
  const reader = new BodyReader(body, signal, limit, deadlines);
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let bytes = await reader.next(); bytes !== undefined; bytes = await reader.next()) {
      text += decoder.decode(bytes, { stream: true });
    }
  } finally {
    reader.close();
  }
  return text + decoder.decode();
}

/** The beginning of a body: what arrived before `limit`, the end, or a failure. */
export async function beginningOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  limit: number,
  deadlines?: AttemptDeadlines,
): Promise<string> {
  const reader = new BodyReader(body, signal, Number.POSITIVE_INFINITY, deadlines);
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (text.length < limit) {
      const bytes = await reader.next();
      if (bytes === undefined) break;
      text += decoder.decode(bytes, { stream: true });
    }
  } catch {
    signal.throwIfAborted();
  } finally {
    reader.close();
  }
  return text.slice(0, limit);
}

/** The most telling short description of a failed connection, without a full stop. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  const text = "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
  return text.replace(/\.+$/, "");
}
