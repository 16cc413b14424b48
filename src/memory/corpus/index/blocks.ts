/**
 * Blocks: the packed rows of the index. A block has the facts, or the vectors, of memories whose keys follow each other, so that the
 * block of a memory is derived from its key. Pure.
 *
 * MEMBLOCK-1  A block reads back as it was written. Names are stored once in a block, and leave it with the last memory that has them.
 * MEMBLOCK-2  A block of an older form, and one that is cut, is refused, so that the index is rebuilt.
 */
import type { Facts, QuantizedVector } from "./entry.ts";

/** The form of what this file writes. Another one is not read. */
const FORM = 1;
/** Header: form, number of places, numbers of a vector, bytes of names. */
const HEADER_BYTES = 16;
const NO_NAME = 0xffff;
/** Beside the flags of a text's description. */
const IS_THERE = 0x80;

/** Bytes of a memory in a block of facts, without names; and of a vector, beside its numbers. */
export const FACTS_BYTES = 4 * 8 + 4 + 6 * 2 + 1;
export const VECTOR_BYTES = 9;

/** A vector that the store of vectors does not have, one that it has acknowledged, and one that its queries surely find. */
export const [UNSENT, SENT, SETTLED] = [0, 1, 2];

/** The block cannot be read: it has another form, or is not whole. */
export class UnreadableBlock extends Error {}

/** The names of a memory, in the order of their columns. */
const NAMES = ["type", "userId", "conversationId", "session", "speaker"] as const;

/** Facts of a block, by the place of their memory in it; a hole where there is none. */
export type FactsBlock = (Facts | undefined)[];

/** Writes a block of facts. */
export function encodeFacts(block: FactsBlock): Uint8Array {
  const used = block.length;
  const ordinals = new Map<string, number>();
  const ordinal = (name: string | undefined) => {
    if (name === undefined) return NO_NAME;
    const known = ordinals.get(name) ?? ordinals.size;
    ordinals.set(name, known);
    return known;
  };
  const wide = new Float64Array(used * 4);
  const hashes = new Uint32Array(used);
  const narrow = new Uint16Array(used * 6);
  const flags = new Uint8Array(used);
  for (let place = 0; place < used; place++) {
    const facts = block[place];
    if (facts === undefined) continue;
    wide.set([facts.time, facts.changedAt, facts.sequence ?? Number.NaN, facts.significance], place * 4);
    hashes[place] = facts.hash;
    narrow.set([Math.min(facts.words, 0xffff), ...NAMES.map((name) => ordinal(facts[name]))], place * 6);
    flags[place] = IS_THERE | facts.flags;
  }
  const names = new TextEncoder().encode(JSON.stringify([...ordinals.keys()]));
  return joined([
    header(used, 0, names.length),
    bytesOf(wide),
    bytesOf(hashes),
    bytesOf(narrow),
    flags,
    names,
  ]);
}

/** Reads a block of facts; `first` is the key of its first place. Throws `UnreadableBlock`. */
export function decodeFacts(bytes: Uint8Array, first: number): FactsBlock {
  const { used, namesBytes, body } = opened(
    bytes,
    (places, _dimensions, names) => places * FACTS_BYTES + names,
  );
  const wide = new Float64Array(body, 0, used * 4);
  const hashes = new Uint32Array(body, used * 32, used);
  const narrow = new Uint16Array(body, used * 36, used * 6);
  const flags = new Uint8Array(body, used * 48, used);
  const names = namesOf(new Uint8Array(body, used * FACTS_BYTES, namesBytes));
  const block: FactsBlock = new Array(used);
  for (let place = 0; place < used; place++) {
    const flag = flags[place] ?? 0;
    if (!(flag & IS_THERE)) continue;
    const [at, near] = [place * 4, place * 6];
    const sequence = wide[at + 2] ?? Number.NaN;
    const facts: Facts = {
      n: first + place,
      time: wide[at] ?? 0,
      changedAt: wide[at + 1] ?? 0,
      significance: wide[at + 3] ?? 0,
      hash: hashes[place] ?? 0,
      words: narrow[near] ?? 0,
      type: names[narrow[near + 1] ?? NO_NAME] ?? "",
      flags: flag & ~IS_THERE,
    };
    if (!Number.isNaN(sequence)) facts.sequence = sequence;
    for (let column = 1; column < NAMES.length; column++) {
      const name = names[narrow[near + 1 + column] ?? NO_NAME];
      const member = NAMES[column];
      if (name !== undefined && member !== undefined) facts[member] = name;
    }
    block[place] = facts;
  }
  return block;
}

/** Vectors of a block, by place. One belongs to its memory only if the hashes are equal. */
export class VectorBlock {
  private constructor(
    readonly dimensions: number,
    readonly used: number,
    /** `NaN` where there is none. */
    readonly scales: Float32Array,
    readonly hashes: Uint32Array,
    /** The progress of each one in the store of vectors: `UNSENT`, `SENT` or `SETTLED`. */
    readonly published: Uint8Array,
    readonly values: Int8Array,
  ) {}

  static empty(dimensions: number, used = 0): VectorBlock {
    const scales = new Float32Array(used).fill(Number.NaN);
    const [hashes, published] = [new Uint32Array(used), new Uint8Array(used)];
    return new VectorBlock(dimensions, used, scales, hashes, published, new Int8Array(used * dimensions));
  }

  /** Reads a block. Throws `UnreadableBlock`. */
  static decode(bytes: Uint8Array): VectorBlock {
    const { used, dimensions, body } = opened(bytes, (places, numbers) => places * (VECTOR_BYTES + numbers));
    return new VectorBlock(
      dimensions,
      used,
      new Float32Array(body, 0, used),
      new Uint32Array(body, used * 4, used),
      new Uint8Array(body, used * 8, used),
      new Int8Array(body, used * VECTOR_BYTES, used * dimensions),
    );
  }

  encode(): Uint8Array {
    const parts = [bytesOf(this.scales), bytesOf(this.hashes), this.published, bytesOf(this.values)];
    return joined([header(this.used, this.dimensions, 0), ...parts]);
  }

  /** Reports whether the place has the vector of a text with this hash, or is known to have none. */
  has(place: number, hash: number): boolean {
    return place < this.used && !Number.isNaN(this.scales[place]) && this.hashes[place] === hash;
  }

  /** It has no vector. */
  get isEmpty(): boolean {
    return this.scales.every((scale) => Number.isNaN(scale));
  }

  /** Returns a block with at least so many places. */
  withPlaces(places: number): VectorBlock {
    if (places <= this.used) return this;
    const next = VectorBlock.empty(this.dimensions, places);
    next.scales.set(this.scales);
    next.hashes.set(this.hashes);
    next.published.set(this.published);
    next.values.set(this.values);
    return next;
  }

  /** Puts a vector in its place, which must be there. */
  put(place: number, hash: number, { scale, values }: QuantizedVector): void {
    this.scales[place] = scale;
    this.hashes[place] = hash;
    this.published[place] = UNSENT;
    this.values.set(values, place * this.dimensions);
  }

  /** Erases a vector. */
  remove(place: number): void {
    if (place >= this.used) return;
    this.scales[place] = Number.NaN;
    this.hashes[place] = 0;
    this.published[place] = UNSENT;
    this.values.fill(0, place * this.dimensions, (place + 1) * this.dimensions);
  }
}

/** Joins both parts of a block in one row. */
export function joinParts(facts: Uint8Array, vectors: Uint8Array): Uint8Array {
  return joined([bytesOf(new Uint32Array([facts.length])), facts, vectors]);
}

/** Returns both parts of a row. */
export function splitParts(bytes: Uint8Array): { facts: Uint8Array; vectors: Uint8Array } {
  if (bytes.length < 4) throw new UnreadableBlock("The row has no parts.");
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  return { facts: bytes.subarray(4, end), vectors: bytes.subarray(end) };
}

function header(used: number, dimensions: number, namesBytes: number): Uint8Array {
  return bytesOf(new Uint32Array([FORM, used, dimensions, namesBytes]));
}

/** Checks a block, and returns its body in a buffer of its own, so that its numbers are aligned. */
function opened(bytes: Uint8Array, sizeOf: (used: number, dimensions: number, names: number) => number) {
  if (bytes.length < HEADER_BYTES) throw new UnreadableBlock("The block has no header.");
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [form = 0, used = 0, dimensions = 0, namesBytes = 0] = [0, 4, 8, 12].map((at) =>
    view.getUint32(at, true),
  );
  if (form !== FORM) throw new UnreadableBlock(`The block has form ${form}; this code reads ${FORM}.`);
  if (bytes.length !== HEADER_BYTES + sizeOf(used, dimensions, namesBytes))
    throw new UnreadableBlock("The block is not whole.");
  return { used, dimensions, namesBytes, body: bytes.slice(HEADER_BYTES).buffer };
}

function namesOf(bytes: Uint8Array): string[] {
  const names: unknown = JSON.parse(new TextDecoder().decode(bytes));
  return Array.isArray(names) ? names.map(String) : [];
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
