/**
 * The rows of a space: blocks, and marks of blocks with remaining work.
 *
 * MEMROWS-1  The key of a memory determines its row. A row combines facts and short vectors, so a write of a memory writes one row. Longer
 *            vectors have their own rows, which a write of facts leaves unchanged.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { ActorDatabase, SqlDatabase } from "../../../ports/sql-database.ts";
import {
  decodeFacts,
  encodeFacts,
  FACTS_BYTES,
  type FactsBlock,
  joinParts,
  splitParts,
  VECTOR_BYTES,
  VectorBlock,
} from "./blocks.ts";
import type { Facts, QuantizedVector } from "./entry.ts";
import type { Space, SpacesState } from "./spaces.ts";

/** Approximate maximum size of a full row in bytes, without names. */
const ROW_BYTES = 20_000;
/** Fewest and most memories of a row. Powers of two. */
const [FEWEST, MOST] = [16, 256];
/** Most dimensions of a vector that shares a row with its facts. */
const MAX_JOINED_DIMENSIONS = 256;

const [BLOCKS, VECTORS, MARKS] = [0, 1, 2];
/**
 * Kinds of rows about a vector store: blocks with vectors that it may lack, memories with vectors to delete, and blocks of a withdrawn
 * space.
 */
export const [UNSENT_BLOCKS, DELETED_VECTORS, WITHDRAWN_BLOCKS] = [3, 4, 5];
const KINDS = 8;
/** Numbers of memories are below this. An id has room for half of it. Keys stay exact for 16,000 spaces. */
export const SPAN = 2 ** 36;

const CREATE = "CREATE TABLE IF NOT EXISTS memory_index (key INTEGER PRIMARY KEY, data BLOB NOT NULL)";
const READ = "SELECT data FROM memory_index WHERE key = ?";
const RANGE = "SELECT key, data FROM memory_index WHERE key >= ? AND key < ? ORDER BY key LIMIT ?";
const COUNT = "SELECT COUNT(*) AS count FROM memory_index WHERE key >= ? AND key < ?";
const WRITE =
  "INSERT INTO memory_index (key, data) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET data = excluded.data";
const ADD = "INSERT OR IGNORE INTO memory_index (key, data) VALUES (?, ?)";
const REMOVE = "DELETE FROM memory_index WHERE key = ?";
const REMOVE_RANGE = `DELETE FROM memory_index WHERE key IN (
  SELECT key FROM memory_index WHERE key >= ? AND key < ? LIMIT ?)`;

type Row = { key: number; data: Uint8Array };

export function createIndexTable(database: SqlDatabase): void {
  database.run(CREATE);
}

/** Deletes at most `limit` rows of a space. Keeps rows about vectors that a store must delete. Returns whether rows may be left. */
export function deleteRows(database: SqlDatabase, space: number, limit: number): boolean {
  const [from, to] = [keyOf(space, BLOCKS, 0), keyOf(space, DELETED_VECTORS, 0)];
  database.run(REMOVE_RANGE, from, to, limit);
  return database.all(RANGE, from, to, 1).length > 0;
}

/** The facts or the vectors of a block, or both. */
export interface ReadBlock {
  /** The key of its first place. */
  first: number;
  facts?: FactsBlock;
  vectors?: VectorBlock;
}

export interface StoredSpaces {
  database: ActorDatabase;
  clock: Pick<Clock, "now" | "timer">;
  state(): SpacesState;
  save(state: SpacesState): void;
  changed(space: Space, edit: SpaceEdit): void;
}

export class SpaceRows {
  readonly dimensions: number;
  readonly isJoined: boolean;
  /** Memories per row of facts, and per row of vectors. */
  readonly factsPerRow: number;
  readonly vectorsPerRow: number;

  constructor(
    private readonly database: SqlDatabase,
    private readonly space: Space,
  ) {
    this.dimensions = space.embedder?.dimensions ?? 0;
    this.isJoined = this.dimensions <= MAX_JOINED_DIMENSIONS;
    const ofVector = VECTOR_BYTES + this.dimensions;
    this.vectorsPerRow = perRow(this.isJoined ? FACTS_BYTES + ofVector : ofVector);
    this.factsPerRow = this.isJoined ? this.vectorsPerRow : perRow(FACTS_BYTES);
  }

  /** Yields all blocks of facts, ascending. Joined rows include their vectors. Throws `UnreadableBlock`. */
  *allFacts(): Generator<ReadBlock> {
    for (const { key, data } of this.#range(BLOCKS)) yield this.#opened(key % SPAN, data);
  }

  /** Yields all blocks of vectors. Throws `UnreadableBlock`. */
  *allVectors(): Generator<ReadBlock & { vectors: VectorBlock }> {
    if (this.dimensions === 0) return;
    for (const { key, data } of this.#range(this.isJoined ? BLOCKS : VECTORS)) {
      const first = (key % SPAN) * this.vectorsPerRow;
      yield { first, vectors: VectorBlock.decode(this.isJoined ? splitParts(data).vectors : data) };
    }
  }

  /** Returns the block of facts that contains the key. */
  factsAt(n: number): ReadBlock {
    const block = Math.floor(n / this.factsPerRow);
    const data = this.#read(BLOCKS, block);
    if (data !== undefined) return this.#opened(block, data);
    const first = block * this.factsPerRow;
    return { first, facts: [], ...(this.isJoined && { vectors: VectorBlock.empty(this.dimensions) }) };
  }

  /** Returns the block of vectors that contains the key. */
  vectorsAt(n: number): ReadBlock & { vectors: VectorBlock } {
    const block = Math.floor(n / this.vectorsPerRow);
    const first = block * this.vectorsPerRow;
    const data = this.#read(this.isJoined ? BLOCKS : VECTORS, block);
    if (data === undefined) return { first, vectors: VectorBlock.empty(this.dimensions) };
    return { first, vectors: VectorBlock.decode(this.isJoined ? splitParts(data).vectors : data) };
  }

  writeFacts({ first, facts = [], vectors }: ReadBlock): void {
    const block = first / this.factsPerRow;
    if (facts.some((one) => one !== undefined)) {
      const encoded = encodeFacts(facts);
      this.#write(BLOCKS, block, vectors === undefined ? encoded : joinParts(encoded, vectors.encode()));
    } else this.#remove(BLOCKS, block);
  }

  /** Writes a block of vectors to its own row. */
  writeVectors(first: number, vectors: VectorBlock): void {
    const block = first / this.vectorsPerRow;
    if (vectors.isEmpty) this.#remove(VECTORS, block);
    else this.#write(VECTORS, block, vectors.encode());
  }

  /** Marks the block of vectors that contains the key as incomplete. Keeps an existing mark. */
  mark(n: number): void {
    this.database.run(ADD, keyOf(this.space.number, MARKS, Math.floor(n / this.vectorsPerRow)), EMPTY);
  }

  /** Returns the first keys of marked blocks. */
  marks(limit: number): { first: number }[] {
    return [...this.#range(MARKS, 0, limit)].map(({ key }) => ({ first: (key % SPAN) * this.vectorsPerRow }));
  }

  countMarks(): number {
    const { number } = this.space;
    const range = [keyOf(number, MARKS, 0), keyOf(number, MARKS + 1, 0)];
    return this.database.all<{ count: number }>(COUNT, ...range)[0]?.count ?? 0;
  }

  unmark(first: number): void {
    this.#remove(MARKS, first / this.vectorsPerRow);
  }

  /** Returns the position for rows of the block of vectors that contains the key. */
  vectorBlock(n: number): number {
    return Math.floor(n / this.vectorsPerRow);
  }

  get vectorKeys(): [from: number, to: number] {
    const kind = this.isJoined ? BLOCKS : VECTORS;
    return [keyOf(this.space.number, kind, 0), keyOf(this.space.number, kind + 1, 0)];
  }

  #opened(block: number, data: Uint8Array): ReadBlock {
    const first = block * this.factsPerRow;
    if (!this.isJoined) return { first, facts: decodeFacts(data, first) };
    const parts = splitParts(data);
    return { first, facts: decodeFacts(parts.facts, first), vectors: VectorBlock.decode(parts.vectors) };
  }

  *#range(kind: number, from = 0, limit = SPAN): Generator<Row> {
    const { number } = this.space;
    yield* this.database.each<Row>(RANGE, keyOf(number, kind, from), keyOf(number, kind + 1, 0), limit);
  }

  #read(kind: number, at: number): Uint8Array | undefined {
    return this.database.all<{ data: Uint8Array }>(READ, keyOf(this.space.number, kind, at))[0]?.data;
  }

  #write(kind: number, at: number, data: Uint8Array): void {
    this.database.run(WRITE, keyOf(this.space.number, kind, at), data);
  }

  #remove(kind: number, at: number): void {
    this.database.run(REMOVE, keyOf(this.space.number, kind, at));
  }
}

const EMPTY = new Uint8Array();

export function keyOf(space: number, kind: number, at: number): number {
  return (space * KINDS + kind) * SPAN + at;
}

export function partsOf(key: number): { space: number; kind: number; at: number } {
  const of = Math.floor(key / SPAN);
  return { space: Math.floor(of / KINDS), kind: of % KINDS, at: key % SPAN };
}

function perRow(bytes: number): number {
  const fitting = 2 ** Math.floor(Math.log2(ROW_BYTES / bytes));
  return Math.min(MOST, Math.max(FEWEST, fitting));
}

/** Changes of a space within one transaction. Reads each block once and writes each changed block once. */
export class SpaceEdit {
  readonly #facts = new Map<number, ReadBlock>();
  readonly #vectors = new Map<number, ReadBlock & { vectors: VectorBlock }>();
  readonly #changed = new Set<ReadBlock>();
  /** Memories with a new vector, and memories with vectors that a store must delete. */
  readonly put = new Set<number>();
  readonly deleted = new Set<number>();

  constructor(readonly rows: SpaceRows) {}

  facts(n: number): Facts | undefined {
    const { first, facts } = this.#factsBlock(n);
    return facts?.[n - first];
  }

  hasVector(n: number, hash: number): boolean {
    if (this.rows.dimensions === 0) return true;
    const { first, vectors } = this.#vectorBlock(n);
    return vectors.has(n - first, hash);
  }

  putFacts(facts: Facts): void {
    const block = this.#factsBlock(facts.n);
    block.facts = block.facts ?? [];
    block.facts[facts.n - block.first] = facts;
    this.#changed.add(block);
  }

  putVector(n: number, hash: number, vector: QuantizedVector): void {
    const block = this.#vectorBlock(n);
    const place = n - block.first;
    const hadVector = (block.vectors.scales[place] ?? 0) > 0;
    block.vectors = block.vectors.withPlaces(place + 1);
    block.vectors.put(place, hash, vector);
    if (vector.scale > 0) this.put.add(n);
    else if (hadVector) this.deleted.add(n);
    this.#changed.add(block);
  }

  /** Updates the progress of a vector in the store, if the text is unchanged and the progress was `before`. */
  publish(n: number, hash: number, before: number, after: number): void {
    const block = this.#vectorBlock(n);
    const place = n - block.first;
    if (!block.vectors.has(place, hash) || block.vectors.published[place] !== before) return;
    block.vectors.published[place] = after;
    this.#changed.add(block);
  }

  vectors(n: number): VectorBlock {
    return this.#vectorBlock(n).vectors;
  }

  remove(n: number): void {
    const block = this.#factsBlock(n);
    if (block.facts?.[n - block.first] === undefined) return;
    delete block.facts[n - block.first];
    this.#changed.add(block);
    if (this.rows.dimensions === 0) return;
    const near = this.#vectorBlock(n);
    if ((near.vectors.scales[n - near.first] ?? 0) > 0) this.deleted.add(n);
    near.vectors.remove(n - near.first);
    this.#changed.add(near);
  }

  /** Writes the changed blocks. Returns their first keys, for facts and for vectors. */
  flush(): { facts: number[]; vectors: number[] } {
    const changed = { facts: [] as number[], vectors: [] as number[] };
    for (const block of this.#facts.values()) {
      const near = this.rows.isJoined ? this.#vectors.get(block.first) : undefined;
      const isChanged = this.#changed.has(block) || (near !== undefined && this.#changed.has(near));
      if (!isChanged) continue;
      this.rows.writeFacts(near === undefined ? block : { ...block, vectors: near.vectors });
      changed.facts.push(block.first);
    }
    if (this.rows.isJoined) return changed;
    for (const block of this.#vectors.values()) {
      if (!this.#changed.has(block)) continue;
      this.rows.writeVectors(block.first, block.vectors);
      changed.vectors.push(block.first);
    }
    return changed;
  }

  #factsBlock(n: number): ReadBlock {
    const first = n - (n % this.rows.factsPerRow);
    const known = this.#facts.get(first);
    if (known !== undefined) return known;
    const { vectors, ...block } = this.rows.factsAt(n);
    this.#facts.set(first, block);
    if (vectors !== undefined) this.#vectors.set(first, { first, vectors });
    return block;
  }

  #vectorBlock(n: number): ReadBlock & { vectors: VectorBlock } {
    if (this.rows.isJoined) this.#factsBlock(n);
    const first = n - (n % this.rows.vectorsPerRow);
    const known = this.#vectors.get(first) ?? this.rows.vectorsAt(n);
    this.#vectors.set(first, known);
    return known;
  }
}
