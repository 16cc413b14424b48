/** Bytes that arrive in parts. */

const FIRST_BYTES = 16 * 1_024;

/**
 * A buffer with a copy of each part. A kept part would hold more memory: on workerd, each part of a stream has a buffer of some KiB of its own.
 * `tooLong` makes the error for more than `most` bytes.
 */
export class ByteBuffer {
  #held = new Uint8Array(0);
  #length = 0;

  constructor(
    private readonly most: number,
    private readonly tooLong: () => Error,
  ) {}

  push(part: Uint8Array): void {
    const length = this.#length + part.byteLength;
    if (length > this.most) throw this.tooLong();
    if (length > this.#held.byteLength) {
      const larger = new Uint8Array(Math.min(this.most, Math.max(length, 2 * this.#length, FIRST_BYTES)));
      larger.set(this.bytes());
      this.#held = larger;
    }
    this.#held.set(part, this.#length);
    this.#length = length;
  }

  bytes(): Uint8Array {
    return this.#held.subarray(0, this.#length);
  }
}

export async function bytesOf(
  body: AsyncIterable<Uint8Array> | null,
  most: number,
  tooLong: () => Error,
): Promise<Uint8Array> {
  const buffer = new ByteBuffer(most, tooLong);
  for await (const part of body ?? []) buffer.push(part);
  return buffer.bytes();
}
