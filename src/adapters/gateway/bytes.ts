/**
 * Reads a response's body within bounds.
 *
 * BYTES-1  The body is cancelled when reading ends early, for whatever reason, so no connection is left behind.
 * BYTES-2  An abort ends a read that hangs; the signal's reason is thrown.
 */
import { ModelFailure } from "../errors.ts";
import type { AttemptDeadlines } from "./deadlines.ts";

/** The chunks of `body`; more than `limit` bytes of it are a failure. `deadlines` hears of each. */
export async function* bytesOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  limit: number,
  deadlines?: AttemptDeadlines,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  try {
    let total = 0;
    for (;;) {
      const { done, value } = await read(reader, signal, deadlines);
      if (done) return;
      total += value.byteLength;
      if (total > limit) throw new ModelFailure("validation", `The reply is larger than ${limit} bytes.`);
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

/** The whole body as text. */
export async function textOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  limit: number,
  deadlines?: AttemptDeadlines,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of bytesOf(body, signal, limit, deadlines))
    text += decoder.decode(bytes, { stream: true });
  return text + decoder.decode();
}

/** The beginning of a body: what arrived before `limit`, the end, or a failure. */
export async function beginningOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  limit: number,
  deadlines?: AttemptDeadlines,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of bytesOf(body, signal, Number.POSITIVE_INFINITY, deadlines)) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length >= limit) break;
    }
  } catch {
    signal.throwIfAborted();
  }
  return text.slice(0, limit);
}

async function read(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
  deadlines: AttemptDeadlines | undefined,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  signal.throwIfAborted();
  try {
    const reading = reader.read();
    const result = await (deadlines?.idle(reading) ?? reading);
    // Cancelling makes a waiting read resolve as if the body had ended.
    signal.throwIfAborted();
    deadlines?.heard();
    return result;
  } catch (error) {
    signal.throwIfAborted();
    throw new ModelFailure("network", `The connection to the model broke: ${reasonOf(error)}.`);
  }
}

/** The most telling short description of a failed connection, without a full stop. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  const text = "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
  return text.replace(/\.+$/, "");
}
