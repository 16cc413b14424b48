/** Sizes of text in UTF-8, which SQLite stores. JavaScript counts UTF-16 units. */
const encoder = new TextEncoder();

/** Below this many UTF-16 units counting is faster than encoding. */
const SHORT_TEXT = 1000;

/** Returns the bytes of `text` in UTF-8. A lone surrogate counts as the three bytes of its replacement. */
export function utf8Length(text: string): number {
  if (text.length >= SHORT_TEXT) return encoder.encode(text).byteLength;
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // A surrogate pair is two units and four bytes, which its first half has counted.
    if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) i += 1;
  }
  return bytes;
}

/** Reports whether `text` has at most `limit` bytes in UTF-8. Does not encode short text. */
export function fitsUtf8(text: string, limit: number): boolean {
  if (text.length * 3 <= limit) return true;
  return text.length <= limit && utf8Length(text) <= limit;
}

/** Cuts `text` into pieces of at most `limit` bytes (4 or more) in UTF-8, never inside a character. */
export function* splitUtf8(text: string, limit: number): Generator<string> {
  const scratch = new Uint8Array(limit);
  for (let start = 0; start < text.length; ) {
    // `limit` units hold at least `limit` bytes, so the slice is never shorter than the piece.
    const { read } = encoder.encodeInto(text.slice(start, start + limit), scratch);
    yield text.slice(start, start + read);
    start += read;
  }
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
