/** The indexes of packs, in version 2 of git's format. Pure. */
import { concat, fromHex, sha1, toHex } from "./bytes.ts";

export const OID_BYTES = 20;
const OIDS_AT = 8 + 256 * 4;

export interface PackEntry {
  oid: string;
  offset: number;
  /** The CRC-32 of its bytes in the pack. */
  crc: number;
}

export interface Pack {
  bytes: Uint8Array;
  entries: PackEntry[];
}

export function encodeIndex({ bytes, entries }: Pack): Uint8Array {
  const sorted = entries.toSorted((one, other) => (one.oid < other.oid ? -1 : 1));
  const numbers = new Uint8Array(8 + 256 * 4);
  const view = new DataView(numbers.buffer);
  view.setUint32(0, 0xff744f63);
  view.setUint32(4, 2);
  const firsts = sorted.map(({ oid }) => Number.parseInt(oid.slice(0, 2), 16));
  let count = 0;
  for (let byte = 0; byte < 256; byte++) {
    while (count < firsts.length && (firsts[count] ?? 0) <= byte) count++;
    view.setUint32(8 + 4 * byte, count);
  }
  const uint32s = (values: number[]) => {
    const list = new DataView(new ArrayBuffer(4 * values.length));
    values.forEach((value, index) => {
      list.setUint32(4 * index, value);
    });
    return new Uint8Array(list.buffer);
  };
  const body = concat([
    numbers,
    ...sorted.map(({ oid }) => fromHex(oid)),
    uint32s(sorted.map(({ crc }) => crc)),
    uint32s(sorted.map(({ offset }) => offset)),
    bytes.subarray(-OID_BYTES),
  ]);
  return concat([body, sha1(body)]);
}

export class PackIndex {
  readonly #view: DataView;
  readonly #offsetsAt: number;
  readonly #count: number;
  #sorted: Uint32Array | undefined;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#count = this.#view.getUint32(OIDS_AT - 4);
    this.#offsetsAt = OIDS_AT + this.#count * (OID_BYTES + 4);
  }

  oids(): string[] {
    return Array.from({ length: this.#count }, (_, row) => this.oidAt(row));
  }

  /** Returns the place of an object in the pack; `undefined` without it. */
  find(oid: string): number | undefined {
    const row = this.rowOf(fromHex(oid));
    return row === undefined ? undefined : this.#offset(row);
  }

  oidAt(row: number): string {
    return toHex(this.#oid(row));
  }

  /** Returns the row of an object by its id as bytes; `undefined` without it. */
  rowOf(wanted: Uint8Array): number | undefined {
    const [first = 0] = wanted;
    let low = first === 0 ? 0 : this.#view.getUint32(8 + 4 * (first - 1));
    let high = this.#view.getUint32(8 + 4 * first);
    while (low < high) {
      const middle = (low + high) >> 1;
      const order = this.#compare(middle, wanted);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return undefined;
  }

  /** Returns the end of the entry at a place. `length` is the length of the pack. */
  endOf(offset: number, length: number): number {
    this.#sorted ??= Uint32Array.from({ length: this.#count }, (_, row) => this.#offset(row)).sort();
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sorted[middle] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return this.#sorted[low] ?? length - OID_BYTES;
  }

  #compare(row: number, oid: Uint8Array): number {
    const from = OIDS_AT + row * OID_BYTES;
    for (let at = 0; at < OID_BYTES; at++) {
      const difference = (this.bytes[from + at] ?? 0) - (oid[at] ?? 0);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  #oid(row: number): Uint8Array {
    const at = OIDS_AT + row * OID_BYTES;
    return this.bytes.subarray(at, at + OID_BYTES);
  }

  #offset(row: number): number {
    return this.#view.getUint32(this.#offsetsAt + 4 * row);
  }
}
