/**
 * The memory of all loaded indexes of an isolate.
 *
 * POOL-1  All indexes together hold at most the bound. To make room, those that were used longest ago are unloaded.
 * POOL-3  A deployment sets the bound in bytes; 0 holds nothing.
 * POOL-2  An index that alone exceeds the bound is not held.
 */
import { DramatisError } from "../../../shared/errors.ts";

/** Bytes of all loaded indexes of an isolate, where a deployment sets no other bound. */
const DEFAULT_INDEX_BYTES = 32 * 1024 * 1024;

/** A thing that the pool can unload. */
export interface PoolMember {
  /** Forgets what it has loaded. It may load that again. */
  unload(): void;
}

/** Bounds the memory of indexes that share an isolate. Make one for each isolate. */
export class IndexPool {
  /** Bytes by member, from the one that was used longest ago. */
  readonly #members = new Map<PoolMember, number>();
  #bytes = 0;

  /** Throws `INVALID_INPUT` for a bound that is no number of bytes. */
  constructor(readonly maxBytes: number = DEFAULT_INDEX_BYTES) {
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
      throw new DramatisError(
        "INVALID_INPUT",
        `\`memory.indexBytes\` is ${maxBytes}. Give a number of bytes.`,
      );
  }

  /** Bytes that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Notes that a member is used and holds so many bytes, and unloads others until all fit. Returns `false`, and releases the member,
   * if it alone exceeds the bound.
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

  /** Notes that a member holds nothing. */
  release(member: PoolMember): void {
    this.#bytes -= this.#members.get(member) ?? 0;
    this.#members.delete(member);
  }
}
