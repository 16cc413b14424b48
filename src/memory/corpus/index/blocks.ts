/**
 * Packs index rows into blocks. A block holds the facts or the vectors of memories with consecutive keys, so a key determines its block.
 * Pure.
 *
 * MEMBLOCK-1  Decoding returns the encoded block. A block stores each name once, and drops it with the last memory that has it.
 * MEMBLOCK-2  A block of another form and a truncated block are refused, so the index is rebuilt.
 */
import type { Facts, QuantizedVector } from "./entry.ts";

/** The form that this file writes and reads. */
const FORM = 2;
/** Header: form, number of places, dimensions of a vector, bytes of names. */
const HEADER_BYTES = 16;
const NO_NAME = 0xffff;
/** Shares a byte with the flags of a text's description. */
const IS_THERE = 0x80;

/** Bytes of a memory's facts without names, and of a vector without its numbers. */
export const FACTS_BYTES = 4 * 8 + 4 + 6 * 2 + 1;
export const VECTOR_BYTES = 9;

/** Progress of a vector: missing in the vector store, acknowledged, or visible to queries. */
export const [UNSENT, SENT, SETTLED] = [0, 1, 2];

/** The block has another form or is truncated. */
export class UnreadableBlock extends Error {}

/** The names of a memory, in column order. */
const NAMES = ["type", "userId", "conversationId", "session", "speaker"] as const;

/** Facts by place in the block. A hole means that the place is empty. */
export type FactsBlock = (Facts | undefined)[];

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

/** Reads a block of facts. `first` is the key of its first place. Throws `UnreadableBlock`. */
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

/** Vectors by place in a block. A vector belongs to its memory only if the hashes are equal. */
export class VectorBlock {
  private constructor(
    readonly dimensions: number,
    readonly used: number,
    /** `NaN` for an empty place. */
    readonly scales: Float32Array,
    readonly hashes: Uint32Array,
    /** The progress of each vector in the vector store: `UNSENT`, `SENT` or `SETTLED`. */
    readonly published: Uint8Array,
    readonly values: Int8Array,
  ) {}

  static empty(dimensions: number, used = 0): VectorBlock {
    const scales = new Float32Array(used).fill(Number.NaN);
    const [hashes, published] = [new Uint32Array(used), new Uint8Array(used)];
    return new VectorBlock(dimensions, used, scales, hashes, published, new Int8Array(used * dimensions));
  }

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

  /** Reports whether the place has the vector of the text with this hash, or records that the text has no vector. */
  has(place: number, hash: number): boolean {
    return place < this.used && !Number.isNaN(this.scales[place]) && this.hashes[place] === hash;
  }

  get isEmpty(): boolean {
    return this.scales.every((scale) => Number.isNaN(scale));
  }

  /** Reports whether the vector store may lack a vector. */
  get hasUnsent(): boolean {
    return this.scales.some((scale, place) => scale > 0 && this.published[place] === UNSENT);
  }

  withPlaces(places: number): VectorBlock {
    if (places <= this.used) return this;
    const next = VectorBlock.empty(this.dimensions, places);
    next.scales.set(this.scales);
    next.hashes.set(this.hashes);
    next.published.set(this.published);
    next.values.set(this.values);
    return next;
  }

  put(place: number, hash: number, { scale, values }: QuantizedVector): void {
    this.scales[place] = scale;
    this.hashes[place] = hash;
    this.published[place] = UNSENT;
    this.values.set(values, place * this.dimensions);
  }

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

export function splitParts(bytes: Uint8Array): { facts: Uint8Array; vectors: Uint8Array } {
  if (bytes.length < 4) throw new UnreadableBlock("The row has no parts.");
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  return { facts: bytes.subarray(4, end), vectors: bytes.subarray(end) };
}

function header(used: number, dimensions: number, namesBytes: number): Uint8Array {
  return bytesOf(new Uint32Array([FORM, used, dimensions, namesBytes]));
}

/** Checks a block. Copies its body to a new buffer, so its numbers are aligned. */
function opened(bytes: Uint8Array, sizeOf: (used: number, dimensions: number, names: number) => number) {
  if (bytes.length < HEADER_BYTES) throw new UnreadableBlock("The block has no header.");
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [form = 0, used = 0, dimensions = 0, namesBytes = 0] = [0, 4, 8, 12].map((at) =>
    view.getUint32(at, true),
  );
  if (form !== FORM) throw new UnreadableBlock(`The block has form ${form}. This code reads form ${FORM}.`);
  if (bytes.length !== HEADER_BYTES + sizeOf(used, dimensions, namesBytes))
    throw new UnreadableBlock("The block is truncated.");
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
