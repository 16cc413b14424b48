/** Small text functions. They never split a surrogate pair. */
import { utf8Length } from "./utf8.ts";

/** Returns at most `limit` UTF-16 units of `text`; an ellipsis marks a cut. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, wholeLength(text, limit - 1))}…`;
}

/** Returns an FNV-1a hash of `text` as eight hexadecimal digits. Not for security. */
export function fingerprint(text: string): string {
  return hash32(text).toString(16).padStart(8, "0");
}

/** Returns the number of `fingerprint`, of 32 bits. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/**
 * Reports whether a text is an HTTP address with only host and path. An empty query or fragment counts too: a path appended
 * to it would not be part of the path.
 */
export function isPlainUrl(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.href === url.origin + url.pathname;
}

/** Returns at most the first `limit` UTF-16 units of a text, well-formed. */
export function cut(text: string, limit: number): string {
  return text.slice(0, wholeLength(text, limit)).toWellFormed();
}

/** Returns the units of a text from `from` to `to`, without halves of surrogate pairs at its ends. */
export function piece(text: string, from: number, to: number): string {
  const start = Math.max(0, from);
  const begin = isLowSurrogate(text.charCodeAt(start)) && start > 0 ? start + 1 : start;
  return text.slice(begin, Math.max(begin, wholeLength(text, to)));
}

/** Returns the length of the beginning of a text with at most `limit` units that does not end within a surrogate pair. */
export function wholeLength(text: string, limit: number): number {
  const end = Math.min(Math.max(0, limit), text.length);
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
}

/** Returns a text with at most `bytes` bytes of UTF-8 as JSON. A longer text is cut and gets an ellipsis. */
export function shortenToJson(text: string, bytes: number): string {
  if (jsonBytes(text) <= bytes) return text;
  let [fits, exceeds] = [0, text.length];
  while (exceeds - fits > 1) {
    const middle = Math.floor((fits + exceeds) / 2);
    if (jsonBytes(text.slice(0, middle)) + ELLIPSIS_BYTES <= bytes) fits = middle;
    else exceeds = middle;
  }
  return `${text.slice(0, wholeLength(text, fits))}…`;
}

const ELLIPSIS_BYTES = 3;

function jsonBytes(text: string): number {
  return utf8Length(JSON.stringify(text));
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
