/**
 * Reads packs: files with many objects, in git's format. Pure.
 *
 * PACK-1  A pack has each of its objects once.
 */
import { crc32 } from "node:zlib";
import { type DramatisError, invalid, tooLarge } from "../shared/errors.ts";
import { inflate, sha1, toHex } from "./bytes.ts";
import { BoundedCache } from "./caches.ts";
import { applyDelta, damaged, tooLargeObject } from "./deltas.ts";
import { MAX_CHAIN, MAX_MESSAGE_BYTES, MAX_OBJECT_BYTES, MAX_OBJECTS, MAX_UNPACKED_BYTES } from "./limits.ts";
import { type GitObject, type ObjectType, oidOf } from "./objects.ts";
import { OID_BYTES, type Pack, type PackEntry } from "./pack-index.ts";

export const TYPES = ["commit", "tree", "blob", "tag"] as const;
export const BY_OFFSET = 6;
const BY_OID = 7;
export const HEADER_BYTES = 12;
/** Objects that `indexPack` keeps for the deltas that follow, in bytes. */
export const KEPT_BYTES = 24 * 1_024 * 1_024;
/** An estimate of the memory that an object needs in addition to its content. */
const OVERHEAD_BYTES = 256;

export interface IndexedPack extends Pack {
  types: ReadonlyMap<string, ObjectType>;
}

/** The beginning of an entry. `base` is the place or the id of the object that a delta changes. */
export interface EntryHeader {
  type?: ObjectType;
  base?: number | string;
  /** Bytes of the inflated content or delta. */
  size: number;
  /** The place of the compressed bytes. */
  data: number;
}

/** Reads the header of an entry. Bytes begin at the place `start` of the pack. */
export function readEntryHeader(bytes: Uint8Array, offset: number, start = 0): EntryHeader {
  let at = offset - start;
  const next = () => {
    const byte = bytes[at++];
    if (byte === undefined) throw damaged();
    return byte;
  };
  let byte = next();
  const kind = (byte >> 4) & 7;
  let size = byte & 15;
  for (let factor = 16; byte >= 128; factor *= 128) {
    if (factor > MAX_OBJECT_BYTES) throw tooLargeObject();
    byte = next();
    size += (byte & 127) * factor;
  }
  if (size > MAX_OBJECT_BYTES) throw tooLargeObject();
  if (kind === BY_OFFSET) {
    byte = next();
    let distance = byte & 127;
    while (byte >= 128) {
      byte = next();
      distance = (distance + 1) * 128 + (byte & 127);
    }
    return { base: offset - distance, size, data: start + at };
  }
  if (kind === BY_OID) {
    const base = toHex(bytes.subarray(at, at + OID_BYTES));
    return { base, size, data: start + at + OID_BYTES };
  }
  const type = TYPES[kind - 1];
  if (type === undefined) throw damaged();
  return { type, size, data: start + at };
}

interface Unresolved {
  offset: number;
  crc: number;
}

/**
 * Checks a pack and returns it with the places of its objects. Throws `INVALID_INPUT` for a damaged pack and for one whose deltas need
 * objects of other packs, and `TOO_LARGE`.
 */
export function indexPack(bytes: Uint8Array): IndexedPack {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isPack =
    bytes.length >= HEADER_BYTES + OID_BYTES &&
    view.getUint32(0) === 0x5041434b &&
    view.getUint32(4) === 2 &&
    toHex(sha1(bytes.subarray(0, -OID_BYTES))) === toHex(bytes.subarray(-OID_BYTES));
  if (!isPack) throw damaged();
  const index = new Indexing(bytes);
  let offset = HEADER_BYTES;
  const count = view.getUint32(8);
  if (count > MAX_OBJECTS) throw tooLarge(`A bundle has at most ${MAX_OBJECTS} objects. Leave out a part.`);
  for (let read = 0; read < count; read++) offset = index.read(offset);
  if (offset !== bytes.length - OID_BYTES) throw damaged();
  return { bytes, entries: index.entries(), types: index.types };
}

/** The objects of a pack while its index is made. */
class Indexing {
  readonly #known = new Map<number, PackEntry>();
  readonly #byOid = new Map<string, number>();
  readonly types = new Map<string, ObjectType>();
  /** The deltas by their bases. */
  readonly #deltas = new Map<number | string, Unresolved[]>();
  #waiting = 0;
  readonly #kept = new BoundedCache<GitObject>(KEPT_BYTES, KEPT_BYTES);
  readonly #count = byteLimit(MAX_UNPACKED_BYTES);

  constructor(private readonly bytes: Uint8Array) {}

  /** Reads the entry at a place, and returns its end. */
  read(offset: number): number {
    const { type, base, size, data } = readEntryHeader(this.bytes, offset);
    const { content, end } = inflate(this.bytes, data, size);
    const crc = crc32(this.bytes.subarray(offset, end));
    if (type !== undefined) {
      this.#add(offset, crc, { type, content });
      return end;
    }
    this.#count(content.length);
    const deltas = this.#deltas.get(base ?? 0) ?? [];
    if (deltas.push({ offset, crc }) === 1) this.#deltas.set(base ?? 0, deltas);
    this.#waiting++;
    return end;
  }

  entries(): PackEntry[] {
    const ready = [...this.#known.values()].map((entry) => ({ entry, chain: 0 }));
    for (let base = ready.pop(); base !== undefined; base = ready.pop()) {
      const { entry, chain } = base;
      for (const key of [entry.offset, entry.oid]) {
        for (const { offset, crc } of this.#deltas.get(key) ?? []) {
          if (chain >= MAX_CHAIN) throw tooDeep();
          const made = this.#add(offset, crc, this.#made(offset, this.#content(entry.offset)));
          ready.push({ entry: made, chain: chain + 1 });
          this.#waiting--;
        }
      }
    }
    if (this.#waiting === 0) return [...this.#known.values()];
    const message =
      "The pack lacks objects that its deltas need. Make a bundle of the whole history: git bundle create all.bundle --all";
    throw invalid(message);
  }

  /** Returns the object at a known place. Walks the chain of its deltas without recursion, because a chain can be long. */
  #content(place: number): GitObject {
    const chain: number[] = [];
    let at = place;
    let found = this.#kept.get(String(at));
    while (found === undefined) {
      const { type, base, size, data } = readEntryHeader(this.bytes, at);
      if (type !== undefined) {
        this.#count(size);
        found = { type, content: inflate(this.bytes, data, size).content };
      } else {
        chain.push(at);
        at = typeof base === "number" ? base : (this.#byOid.get(base ?? "") ?? 0);
        found = this.#kept.get(String(at));
      }
    }
    for (const delta of chain.reverse()) found = this.#made(delta, found);
    this.#keep(place, found);
    return found;
  }

  #made(offset: number, { type, content }: GitObject): GitObject {
    const { size, data } = readEntryHeader(this.bytes, offset);
    this.#count(size);
    const made = applyDelta(content, inflate(this.bytes, data, size).content);
    this.#count(made.length);
    return { type, content: made };
  }

  #add(offset: number, crc: number, object: GitObject): PackEntry {
    const { type, content } = object;
    if ((type === "commit" || type === "tag") && content.length > MAX_MESSAGE_BYTES)
      throw tooLarge(`A ${type} has more than ${MAX_MESSAGE_BYTES} bytes. Shorten its message.`);
    const oid = oidOf(object);
    if (this.#byOid.has(oid)) throw invalid(`The pack has the object ${oid} twice.`);
    this.#byOid.set(oid, offset);
    this.types.set(oid, type);
    const entry = { oid, offset, crc };
    this.#known.set(offset, entry);
    this.#count(content.length);
    this.#keep(offset, object);
    return entry;
  }

  #keep(offset: number, object: GitObject): void {
    this.#kept.set(String(offset), object, object.content.length + OVERHEAD_BYTES);
  }
}

/** Returns a function that counts bytes which are inflated or made of deltas. It throws `TOO_LARGE` above a limit. */
export function byteLimit(most: number): (bytes: number) => void {
  let left = most;
  return (bytes) => {
    left -= bytes;
    if (left < 0) throw tooLarge(`The objects have more than ${most} bytes when inflated.`);
  };
}

function tooDeep(): DramatisError {
  const message = `An object has more than ${MAX_CHAIN} deltas. Repack the repository: git repack -adf, then import it again.`;
  return invalid(message);
}
