const ASCII = new TextEncoder();
const DIGITS = ASCII.encode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
const [PAD = 0] = ASCII.encode("=");

export function toBase64(bytes: Uint8Array): string {
  return new TextDecoder().decode(toBase64Bytes(bytes));
}

/** As `toBase64`, in ASCII. Written by hand: the platforms have no function without a string of the same size. */
export function toBase64Bytes(bytes: Uint8Array): Uint8Array {
  const text = new Uint8Array(4 * Math.ceil(bytes.length / 3));
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    const bits = (at(bytes, from) << 16) | (at(bytes, from + 1) << 8) | at(bytes, from + 2);
    text[to] = at(DIGITS, bits >> 18);
    text[to + 1] = at(DIGITS, (bits >> 12) & 63);
    text[to + 2] = at(DIGITS, (bits >> 6) & 63);
    text[to + 3] = at(DIGITS, bits & 63);
  }
  return text.fill(PAD, Math.ceil((bytes.length * 4) / 3));
}

/** Returns 0 beyond the end. */
function at(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0;
}

/** Decodes base64. Throws for other text. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes;
}
