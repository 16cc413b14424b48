/** Deltas: objects as changes of other objects, in git's format. Pure. */
import { type DramatisError, invalid, tooLarge } from "../shared/errors.ts";
import { concat } from "./bytes.ts";
import { MAX_OBJECT_BYTES } from "./limits.ts";

/** The longest copy and the longest new text of one command. */
const [MAX_COPY, MAX_INSERT] = [0xffffff, 127];
/** Bytes of a short part. */
const SHORT = 32;

export function applyDelta(base: Uint8Array, delta: Uint8Array): Uint8Array {
  let at = 0;
  const next = () => {
    const byte = delta[at++];
    if (byte === undefined) throw damaged();
    return byte;
  };
  const size = () => {
    let value = 0;
    let byte = 128;
    for (let factor = 1; byte >= 128; factor *= 128) {
      byte = next();
      value += (byte & 127) * factor;
    }
    return value;
  };
  const number = (bits: number, count: number) => {
    let value = 0;
    for (let index = 0; index < count; index++) if ((bits >> index) & 1) value |= next() << (8 * index);
    return value >>> 0;
  };
  if (size() !== base.length) throw damaged();
  const length = size();
  if (length > MAX_OBJECT_BYTES) throw tooLargeObject();
  const made = new Uint8Array(length);
  let filled = 0;
  const add = (source: Uint8Array, from: number, count: number) => {
    if (from + count > source.length || filled + count > length) throw damaged();
    // A hostile delta has millions of short commands. For them, a view costs more than a loop.
    if (count < SHORT) for (let end = from + count; from < end; ) made[filled++] = source[from++] ?? 0;
    else {
      made.set(source.subarray(from, from + count), filled);
      filled += count;
    }
  };
  while (at < delta.length) {
    const command = next();
    if (command >= 128) {
      const from = number(command, 4);
      const count = number(command >> 4, 3) || 0x10000;
      add(base, from, count);
    } else {
      if (command === 0) throw damaged();
      add(delta, at, command);
      at += command;
    }
  }
  if (filled !== length) throw damaged();
  return made;
}

/** The bytes that two contents share at their beginning, and after that at their end. */
interface Shared {
  start: number;
  end: number;
}

/** Returns what two contents share. */
export function sharedEnds(one: Uint8Array, other: Uint8Array): Shared {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start++;
  let end = 0;
  while (end < most - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
  return { start, end };
}

/** Returns the delta that replaces the bytes of `base` between its shared ends. */
export function encodeDelta(base: Uint8Array, content: Uint8Array, { start, end }: Shared): Uint8Array {
  const parts = [sizeBytes(base.length), sizeBytes(content.length), ...copies(0, start)];
  for (let at = start; at < content.length - end; at += MAX_INSERT) {
    const part = content.subarray(at, Math.min(at + MAX_INSERT, content.length - end));
    parts.push(Uint8Array.of(part.length), part);
  }
  return concat([...parts, ...copies(base.length - end, end)]);
}

function* copies(from: number, length: number): Generator<Uint8Array> {
  for (let at = 0; at < length; at += MAX_COPY) {
    const bytes = [0x80];
    const add = (value: number, count: number, bit: number) => {
      for (let index = 0; index < count; index++) {
        const byte = Math.floor(value / 256 ** index) % 256;
        if (byte === 0) continue;
        bytes.push(byte);
        bytes[0] = (bytes[0] ?? 0) | (1 << (bit + index));
      }
    };
    add(from + at, 4, 0);
    add(Math.min(MAX_COPY, length - at), 3, 4);
    yield Uint8Array.from(bytes);
  }
}

function sizeBytes(size: number): Uint8Array {
  const bytes = [size & 127];
  for (let rest = Math.floor(size / 128); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 128;
    bytes.push(rest & 127);
  }
  return Uint8Array.from(bytes);
}

export function damaged(): DramatisError {
  return invalid("The pack is damaged. Make the bundle again.");
}

export function tooLargeObject(): DramatisError {
  return tooLarge(`An object has more than ${MAX_OBJECT_BYTES} bytes. Leave it out of the history.`);
}
