/** A space in memory: the columns for ranking, and the vectors by place if they fit. */
import { MemoryColumns, NONE } from "../../ranking/columns.ts";
import type { VectorBlock } from "./blocks.ts";
import type { ReadBlock, SpaceRows } from "./space-rows.ts";

/** Bytes of a memory in the columns with its hash and scale, and its approximate share of maps and lists. */
const [COLUMNS_BYTES, MAPS_BYTES] = [68, 64];
const INITIAL_PLACES = 64;

export class LoadedSpace {
  readonly columns = new MemoryColumns();
  /** The scale of each vector. `NaN` if the memory has no vector yet. */
  scales = new Float32Array(INITIAL_PLACES).fill(Number.NaN);
  #hashes = new Uint32Array(INITIAL_PLACES);
  /** Vectors by place. `null` if each search reads them from the rows. */
  vectors: Int8Array | null;

  constructor(
    readonly number: number,
    private readonly rows: SpaceRows,
    hasVectors: boolean,
  ) {
    this.vectors = hasVectors ? new Int8Array(INITIAL_PLACES * rows.dimensions) : null;
  }

  /** Approximate size in bytes. */
  get bytes(): number {
    return this.scales.length * COLUMNS_BYTES + this.columns.count * MAPS_BYTES + (this.vectors?.length ?? 0);
  }

  /** Loads all rows. Stops and returns `false` when `mayHold` refuses the bytes. Throws `UnreadableBlock`. */
  load(mayHold: (bytes: number) => boolean): boolean {
    let held = 0;
    for (const block of this.rows.allFacts()) {
      this.apply(block);
      if (this.bytes === held) continue;
      held = this.bytes;
      if (!mayHold(held)) return false;
    }
    if (this.rows.isJoined || this.vectors === null) return true;
    for (const { first, vectors } of this.rows.allVectors()) this.#applyVectors(first, vectors);
    return true;
  }

  /** Replaces the memories of a block with its current content. */
  apply({ first, facts, vectors }: ReadBlock): void {
    if (facts !== undefined) {
      for (let place = 0; place < this.rows.factsPerRow; place++) {
        const one = facts[place];
        if (one === undefined) {
          const free = this.columns.remove(first + place);
          if (free !== undefined) this.scales[free] = Number.NaN;
          continue;
        }
        const at = this.columns.put(one);
        this.#reserve(at + 1);
        if (this.#hashes[at] !== one.hash) this.scales[at] = Number.NaN;
        this.#hashes[at] = one.hash;
      }
    }
    if (vectors !== undefined) this.#applyVectors(first, vectors);
  }

  /** Calls `visit` for each vector of a block that belongs to the text of its memory. */
  eachVector(first: number, block: VectorBlock, visit: (at: number, place: number) => void): void {
    for (let place = 0; place < block.used; place++) {
      const at = this.columns.placeOf(first + place);
      if (at !== undefined && block.has(place, this.#hashes[at] ?? 0)) visit(at, place);
    }
  }

  isUsed(place: number): boolean {
    return this.columns.n[place] !== NONE;
  }

  #applyVectors(first: number, block: VectorBlock): void {
    const { dimensions } = block;
    this.eachVector(first, block, (at, place) => {
      this.scales[at] = block.scales[place] ?? 0;
      const from = place * dimensions;
      this.vectors?.set(block.values.subarray(from, from + dimensions), at * dimensions);
    });
  }

  #reserve(places: number): void {
    if (places <= this.scales.length) return;
    const capacity = Math.max(places, Math.ceil(this.scales.length * 1.5));
    const scales = new Float32Array(capacity).fill(Number.NaN);
    scales.set(this.scales);
    this.scales = scales;
    const hashes = new Uint32Array(capacity);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    if (this.vectors === null) return;
    const vectors = new Int8Array(capacity * this.rows.dimensions);
    vectors.set(this.vectors);
    this.vectors = vectors;
  }
}
