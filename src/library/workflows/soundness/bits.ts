/** Sets of small numbers. Pure. */

/** A set of numbers below a fixed size. */
export class Bits {
  readonly #words: Uint32Array;

  constructor(size: number) {
    this.#words = new Uint32Array(Math.ceil(size / 32));
  }

  add(value: number): void {
    this.#words[value >>> 5] = (this.#words[value >>> 5] ?? 0) | (1 << (value & 31));
  }

  has(value: number): boolean {
    return ((this.#words[value >>> 5] ?? 0) & (1 << (value & 31))) !== 0;
  }

  /** Adds the members of another set of the same size. */
  addAll(other: Bits): void {
    for (let at = 0; at < this.#words.length; at++)
      this.#words[at] = (this.#words[at] ?? 0) | (other.#words[at] ?? 0);
  }
}
