/** What the repositories of one object store have read, within a number of bytes. */
import type { GitObject } from "./objects.ts";
import type { PackIndex } from "./pack-index.ts";

const MIB = 1_024 * 1_024;

/** The values that were used last, up to a number of bytes. */
export class BoundedCache<Value> {
  readonly #values = new Map<string, { value: Value; bytes: number }>();
  #bytes = 0;

  /** A value with more bytes than `largest` is not kept. */
  constructor(
    private readonly maxBytes: number,
    private readonly largest = maxBytes / 4,
  ) {}

  get(key: string): Value | undefined {
    const found = this.#values.get(key);
    if (found === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, found);
    return found.value;
  }

  set(key: string, value: Value, bytes: number): void {
    if (bytes > this.largest || this.#values.has(key)) return;
    this.#values.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const [old, { bytes: freed }] of this.#values) {
      if (this.#bytes <= this.maxBytes) break;
      this.#values.delete(old);
      this.#bytes -= freed;
    }
  }
}

/** The number of entries below a tree, and the characters of their longest path. */
export interface TreeSize {
  entries: number;
  longest: number;
}

/** The caches of an isolate. Packs and objects never change, and the names of packs are unique in an object store. */
export class GitCaches {
  /** Parts of packs, by the name of the pack and the number of the block. */
  readonly blocks = new BoundedCache<Uint8Array>(24 * MIB);
  /** By the name of the pack and the place. */
  readonly objects: BoundedCache<GitObject>;
  /** By the names of packs. */
  readonly indexes = new BoundedCache<PackIndex>(8 * MIB);
  /** By the ids of trees. */
  readonly sizes = new BoundedCache<TreeSize>(2 * MIB);

  constructor(objectBytes = 8 * MIB) {
    this.objects = new BoundedCache(objectBytes);
  }
}
