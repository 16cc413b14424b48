/** Small text tools of the adapters. None of them splits a surrogate pair. */

/** At most `limit` UTF-16 units of `text`; what was cut is marked by an ellipsis. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const kept = text.slice(0, limit - 1);
  return `${isHighSurrogate(kept.charCodeAt(kept.length - 1)) ? kept.slice(0, -1) : kept}…`;
}

/** Eight hexadecimal digits that stand for `text` (FNV-1a): equal texts give equal digits. Not for security. */
export function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, "0");
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
