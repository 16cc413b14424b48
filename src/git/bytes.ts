/** Bytes of git: hashes, compression and hexadecimal text. */
import { createHash } from "node:crypto";
import { deflateSync, inflateSync } from "node:zlib";
import { invalid } from "../shared/errors.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** Node and Workers allocate at least this many bytes for an output. */
const MIN_OUTPUT = 64;

export function encode(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Returns the text of UTF-8 bytes. Invalid bytes become U+FFFD. */
export function decode(bytes: Uint8Array): string {
  return lenient.decode(bytes);
}

/** As `decode`. Throws `INVALID_INPUT` for invalid bytes. `what` names the text in the error. */
export function decodeExactly(bytes: Uint8Array, what: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw invalid(`${what} must be UTF-8. Rename it: ${JSON.stringify(decode(bytes))}.`);
  }
}

/** Returns the text of bytes; `undefined` for bytes that are no text in UTF-8. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** Returns the value of a hexadecimal digit in lower case by its character code. */
function digit(code: number): number {
  return code < 0x61 ? code - 0x30 : code - 0x57;
}

export function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at++)
    bytes[at] = digit(text.charCodeAt(2 * at)) * 16 + digit(text.charCodeAt(2 * at + 1));
  return bytes;
}

/** Returns the SHA-1 of the parts in a row: 20 bytes. */
export function sha1(...parts: Uint8Array[]): Uint8Array {
  const hash = createHash("sha1");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

export function deflate(bytes: Uint8Array): Uint8Array {
  return deflateSync(bytes);
}

/**
 * Inflates the stream that begins at `start`. `size` is the number of its bytes, and `end` the place after the stream. Throws
 * `INVALID_INPUT` if the stream is damaged or has another size.
 */
export function inflate(
  bytes: Uint8Array,
  start: number,
  size: number,
): { content: Uint8Array; end: number } {
  const outputs = {
    info: true,
    chunkSize: Math.max(MIN_OUTPUT, size),
    maxOutputLength: Math.max(1, size),
  } as const;
  try {
    const inflated: unknown = inflateSync(bytes.subarray(start), outputs);
    // SAFETY: so is the result with the option `info`.
    const { buffer, engine } = inflated as { buffer: Uint8Array; engine: { bytesWritten: number } };
    if (buffer.length === size) {
      return {
        content: new Uint8Array(buffer.buffer, buffer.byteOffset, size),
        end: start + engine.bytesWritten,
      };
    }
  } catch (cause) {
    throw invalid(DAMAGED, { cause });
  }
  throw invalid(DAMAGED);
}

const DAMAGED = "The pack is damaged: an object does not have its size. Make the bundle again.";
