/**
 * Bounds the memory of all loaded indexes of an isolate.
 *
 * POOL-1  All indexes together stay within the bound. The least recently used are unloaded first.
 * POOL-3  A deployment sets the bound in bytes. With 0, all indexes stay unloaded.
 * POOL-2  An index that exceeds the bound alone is not held.
 */
import { invalid } from "../../../shared/errors.ts";

/** Default bound of all loaded indexes of an isolate, in bytes. */
const DEFAULT_INDEX_BYTES = 32 * 1024 * 1024;

export interface PoolMember {
  /** Drops loaded data. The member may load it again. */
  unload(): void;
}

/** Bounds the memory of indexes that share an isolate. Create one per isolate. */
export class IndexPool {
  /** Bytes by member, least recently used first. */
  readonly #members = new Map<PoolMember, number>();
  #bytes = 0;

  /** Throws `INVALID_INPUT` for an invalid bound. */
  constructor(readonly maxBytes: number = DEFAULT_INDEX_BYTES) {
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
      throw invalid(`\`memory.indexBytes\` is ${maxBytes}. Give a number of bytes.`);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Records the use and size of a member, and unloads others until all fit. If the member exceeds the bound alone, releases it and returns
   * `false`.
   */
  hold(member: PoolMember, bytes: number): boolean {
    this.release(member);
    if (bytes > this.maxBytes) return false;
    for (const other of this.#members.keys()) {
      if (this.#bytes + bytes <= this.maxBytes) break;
      this.release(other);
      other.unload();
    }
    this.#members.set(member, bytes);
    this.#bytes += bytes;
    return true;
  }

  release(member: PoolMember): void {
    this.#bytes -= this.#members.get(member) ?? 0;
    this.#members.delete(member);
  }
}
