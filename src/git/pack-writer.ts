/**
 * Writes packs: of objects, of a part of a pack, and of several packs. Pure.
 *
 * PACK-2  A joined pack has all objects of its packs. The entries of commits and files keep their compressed bytes.
 * PACK-3  A part of a pack keeps the compressed bytes of its entries, unless it leaves out the base of a delta.
 * PACK-4  In a joined pack, trees are deltas of similar trees before them. A chain of such deltas has at most `MAX_DEPTH`.
 */
import { crc32 } from "node:zlib";
import { tooLarge } from "../shared/errors.ts";
import { concat, deflate, encode, inflate, sha1 } from "./bytes.ts";
import { applyDelta, damaged, encodeDelta, sharedEnds } from "./deltas.ts";
import { MAX_BUNDLE_BYTES } from "./limits.ts";
import type { GitObject } from "./objects.ts";
import { BY_OFFSET, type EntryHeader, HEADER_BYTES, readEntryHeader, TYPES } from "./pack.ts";
import { encodeIndex, type Pack, type PackEntry, PackIndex } from "./pack-index.ts";

/** The deltas between a tree and its whole base. */
const MAX_DEPTH = 50;
/** The trees before a tree that may be its base. */
const WINDOW = 8;

export function writePack(objects: ReadonlyMap<string, GitObject>): Pack {
  const writer = new PackWriter(objects.size);
  for (const [oid, object] of objects) writer.addObject(oid, object);
  return writer.end();
}

/** Returns a pack of some objects of a pack (PACK-3). Throws `TOO_LARGE`. */
export async function partOf(
  pack: Pack,
  oids: ReadonlySet<string>,
  read: (oid: string) => Promise<GitObject>,
): Promise<Pack> {
  const writer = new PackWriter(oids.size);
  for (const entry of entriesOf({ bytes: pack.bytes, index: new PackIndex(encodeIndex(pack)) })) {
    if (!oids.has(entry.oid)) continue;
    const base = entry.baseOid ?? entry.header.base;
    if (typeof base !== "string" || oids.has(base)) writer.addEntry(entry);
    else writer.addObject(entry.oid, await read(entry.oid));
    if (writer.length > MAX_BUNDLE_BYTES) {
      const message = `The new objects have more than ${MAX_BUNDLE_BYTES} bytes. Import an older commit first.`;
      throw tooLarge(message);
    }
  }
  return writer.end();
}

/** Returns one pack with the objects of all packs. The first copy of an object counts. */
export function joinPacks(packs: readonly { bytes: Uint8Array; index: PackIndex }[]): Pack {
  const writer = new PackWriter(new Set(packs.flatMap(({ index }) => index.oids())).size);
  const trees = new TreeDeltas();
  for (const pack of packs) {
    const entries = [...entriesOf(pack)];
    const heights = heightsOf(entries);
    for (const entry of entries) {
      const tree = heights && trees.take(entry, heights.get(entry.oid) ?? 0);
      if (tree === undefined) writer.addEntry(entry);
      else if ("base" in tree) writer.addDelta(entry.oid, tree.base, tree.delta);
      else writer.addObject(entry.oid, { type: "tree", content: tree.content });
    }
  }
  return writer.end();
}

interface RecentTree {
  oid: string;
  content: Uint8Array;
  /** The number of deltas between the tree and a whole tree in the new pack. */
  depth: number;
}

/** Recent trees, and deltas against them (PACK-4). */
class TreeDeltas {
  #recent: RecentTree[] = [];
  readonly #depths = new Map<string, number>();

  /**
   * Takes the next entry. Returns how the new pack has its tree: as a delta, or whole; `undefined` if it has the entry as it is. `height` is the
   * longest chain of deltas on the tree in its pack.
   */
  take(
    { oid, header, baseOid, bytes, data }: RawEntry,
    height: number,
  ): { base: string; delta: Uint8Array } | { content: Uint8Array } | undefined {
    const base = this.#recent.find((tree) => tree.oid === baseOid);
    if (header.type !== "tree" && base === undefined) return undefined;
    const { content: inflated } = inflate(bytes, data, header.size);
    const content = base === undefined ? inflated : applyDelta(base.content, inflated);
    const isWritten = this.#depths.has(oid);
    if (isWritten || (base !== undefined && base.depth + 1 + height <= MAX_DEPTH)) {
      this.#keep(oid, content, (base?.depth ?? 0) + 1);
      return undefined;
    }
    const best = this.#bestFor(content, height);
    this.#keep(oid, content, best === undefined ? 0 : best.depth + 1);
    if (best !== undefined) return { base: best.oid, delta: encodeDelta(best.content, content, best.shared) };
    return base === undefined ? undefined : { content };
  }

  /** Returns the tree that shares most with a content, if it shares more than half. */
  #bestFor(content: Uint8Array, height: number) {
    const [best] = this.#recent
      .filter(({ depth }) => depth + 1 + height <= MAX_DEPTH)
      .map((tree) => {
        const shared = sharedEnds(tree.content, content);
        return { ...tree, shared, rest: content.length - shared.start - shared.end };
      })
      .sort((one, other) => one.rest - other.rest);
    return best !== undefined && best.rest < content.length / 2 ? best : undefined;
  }

  /** Keeps a tree. The first copy determines its depth. */
  #keep(oid: string, content: Uint8Array, given: number): void {
    const depth = this.#depths.get(oid) ?? given;
    this.#depths.set(oid, depth);
    this.#recent = [...this.#recent.slice(1 - WINDOW), { oid, content, depth }];
  }
}

/** Returns the longest chain of deltas on each object; `undefined` if a delta comes before its base. */
function heightsOf(entries: readonly RawEntry[]): ReadonlyMap<string, number> | undefined {
  const heights = new Map<string, number>();
  for (const { oid, header, baseOid } of entries.toReversed()) {
    if (header.type !== undefined) continue;
    // Such a base has an id in the header, and any place.
    if (baseOid === undefined) return undefined;
    heights.set(baseOid, Math.max(heights.get(baseOid) ?? 0, (heights.get(oid) ?? 0) + 1));
  }
  return heights;
}

interface RawEntry {
  oid: string;
  header: EntryHeader;
  /** The id of the base, if the header has its place. */
  baseOid: string | undefined;
  bytes: Uint8Array;
  /** The place of the compressed bytes within `bytes`. */
  data: number;
}

function* entriesOf({ bytes, index }: { bytes: Uint8Array; index: PackIndex }): Generator<RawEntry> {
  const byOffset = new Map(index.oids().map((oid) => [index.find(oid) ?? 0, oid]));
  for (const offset of [...byOffset.keys()].sort((one, other) => one - other)) {
    const header = readEntryHeader(bytes, offset);
    const end = index.endOf(offset, bytes.length);
    yield {
      oid: byOffset.get(offset) ?? "",
      header,
      baseOid: typeof header.base === "number" ? byOffset.get(header.base) : undefined,
      bytes: bytes.subarray(offset, end),
      data: header.data - offset,
    };
  }
}

/** Collects the entries of a new pack. */
class PackWriter {
  readonly #parts: Uint8Array[];
  readonly #places = new Map<string, number>();
  readonly #entries: PackEntry[] = [];
  length = HEADER_BYTES;

  constructor(count: number) {
    const header = new Uint8Array(HEADER_BYTES);
    header.set(encode("PACK"));
    const view = new DataView(header.buffer);
    view.setUint32(4, 2);
    view.setUint32(8, count);
    this.#parts = [header];
  }

  add(oid: string, ...parts: Uint8Array[]): void {
    const bytes = concat(parts);
    this.#entries.push({ oid, offset: this.length, crc: crc32(bytes) });
    this.#places.set(oid, this.length);
    this.#parts.push(bytes);
    this.length += bytes.length;
  }

  addObject(oid: string, { type, content }: GitObject): void {
    if (this.#places.has(oid)) return;
    this.add(oid, entryHeader(TYPES.indexOf(type) + 1, content.length), deflate(content));
  }

  /** Adds an object as a delta of an earlier object, unless the pack has it. */
  addDelta(oid: string, base: string, delta: Uint8Array): void {
    const place = this.#places.get(base);
    if (place === undefined) throw damaged();
    if (this.#places.has(oid)) return;
    const distance = Uint8Array.from(distanceBytes(this.length - place));
    this.add(oid, entryHeader(BY_OFFSET, delta.length), distance, deflate(delta));
  }

  /** Adds an entry of another pack, unless the pack has its object. A base has its place before its deltas. */
  addEntry({ oid, header, baseOid, bytes, data }: RawEntry): void {
    if (this.#places.has(oid)) return;
    if (baseOid === undefined) {
      this.add(oid, bytes);
      return;
    }
    const place = this.#places.get(baseOid);
    if (place === undefined) throw damaged();
    const distance = distanceBytes(this.length - place);
    this.add(oid, entryHeader(BY_OFFSET, header.size), Uint8Array.from(distance), bytes.subarray(data));
  }

  end(): Pack {
    const trailer = sha1(...this.#parts);
    return { bytes: concat([...this.#parts, trailer]), entries: this.#entries };
  }
}

function entryHeader(kind: number, size: number): Uint8Array {
  const bytes = [(kind << 4) | (size & 15)];
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 128;
    bytes.push(rest & 127);
  }
  return Uint8Array.from(bytes);
}

function distanceBytes(distance: number): number[] {
  const bytes = [distance & 127];
  for (let rest = Math.floor(distance / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest -= 1;
    bytes.unshift(128 | (rest & 127));
  }
  return bytes;
}
