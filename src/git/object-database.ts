/**
 * The objects of one repository, in packs.
 *
 * GITDB-1  Packs never change. A pack can be replaced by one with the same objects, so a reader that misses a pack lists the packs again.
 * GITDB-2  Packs are read in blocks. The memory for blocks and objects is bounded, for all repositories together.
 */
import type { PackRow } from "../d1/repositories.ts";
import { invalid, notFound, tooLarge } from "../shared/errors.ts";
import { concat, inflate } from "./bytes.ts";
import { GitCaches } from "./caches.ts";
import { applyDelta } from "./deltas.ts";
import { MAX_NEW_BYTES } from "./limits.ts";
import { type GitObject, type ObjectType, oidOf } from "./objects.ts";
import { type EntryHeader, readEntryHeader } from "./pack.ts";
import type { PackIndex } from "./pack-index.ts";

const OID = /^[0-9a-f]{40}$/;
const BLOCK_BYTES = 1_024 * 1_024;
/** An estimate of the memory that an object needs in addition to its content. */
const OVERHEAD_BYTES = 500;
/** Bytes of the longest header of an entry: a size, and an object id or a distance. */
const MAX_HEADER_BYTES = 32;

export interface LoadedPack extends PackRow {
  index: PackIndex;
}

export interface PackSource {
  /** Returns all present packs, oldest first. Throws `UNAVAILABLE` if other writers replace them meanwhile. `known` packs need not be read again. */
  list(known: readonly LoadedPack[]): Promise<LoadedPack[]>;
  /** Returns bytes of a pack; `undefined` if another pack has replaced it. */
  part(pack: PackRow, offset: number, length: number): Promise<Uint8Array | undefined>;
}

export interface ObjectReader {
  /** Throws `NOT_FOUND` without the object. */
  read(oid: string): Promise<GitObject>;
}

/** Returns the content of an object. Throws `NOT_FOUND` without the object, and `INVALID_INPUT` if it has another type. */
export async function contentOf(objects: ObjectReader, oid: string, type: ObjectType): Promise<Uint8Array> {
  const object = await objects.read(oid);
  if (object.type === type) return object.content;
  throw invalid(`The object ${oid} is a ${object.type}, not a ${type}. Name a ${type}.`);
}

export class ObjectDatabase implements ObjectReader {
  #packs: Promise<LoadedPack[]> | undefined;

  constructor(
    private readonly source: PackSource,
    private readonly caches = new GitCaches(),
    /** Gets the number of the bytes that are inflated or made of a delta. */
    private readonly count: (bytes: number) => void = () => undefined,
  ) {}

  get sizes(): GitCaches["sizes"] {
    return this.caches.sizes;
  }

  async read(oid: string): Promise<GitObject> {
    const object = OID.test(oid) ? ((await this.#find(oid)) ?? (await this.#findAgain(oid))) : undefined;
    if (object === undefined) throw notFound(`The repository has no object ${oid}.`);
    return object;
  }

  async has(oid: string): Promise<boolean> {
    return (await this.packs()).some(({ index }) => index.find(oid) !== undefined);
  }

  /** Returns the known packs, oldest first. */
  packs(): Promise<LoadedPack[]> {
    this.#packs ??= this.#list([]);
    return this.#packs;
  }

  async reload(): Promise<LoadedPack[]> {
    const known = await this.packs().catch(() => []);
    this.#packs = this.#list(known);
    return this.#packs;
  }

  /** Adds a stored pack to the known packs, and forgets the packs that it replaces. */
  async add(pack: LoadedPack, bytes: Uint8Array, replaced: readonly PackRow[]): Promise<void> {
    const left = (await this.packs()).filter(({ name }) => !replaced.some((row) => row.name === name));
    this.#packs = Promise.resolve([...left, pack]);
    if (bytes.length <= BLOCK_BYTES) this.caches.blocks.set(`${pack.name}:0`, bytes, bytes.length);
  }

  async #list(known: readonly LoadedPack[]): Promise<LoadedPack[]> {
    try {
      return await this.source.list(known);
    } catch (error) {
      this.#packs = undefined;
      throw error;
    }
  }

  async #findAgain(oid: string): Promise<GitObject | undefined> {
    await this.reload();
    return this.#find(oid);
  }

  /** Returns an object of the known packs; `undefined` if no pack has it, or its pack was replaced. */
  async #find(oid: string): Promise<GitObject | undefined> {
    for (const pack of await this.packs()) {
      const offset = pack.index.find(oid);
      if (offset !== undefined) return this.#objectAt(pack, offset);
    }
    return undefined;
  }

  async #objectAt(pack: LoadedPack, offset: number): Promise<GitObject | undefined> {
    const deltas: { at: number; delta: Uint8Array }[] = [];
    let found: GitObject | undefined;
    for (let at = offset; found === undefined; ) {
      found = this.caches.objects.get(`${pack.name}:${at}`);
      if (found !== undefined) break;
      const entry = await this.#entryAt(pack, at);
      if (entry === undefined) return undefined;
      const { header, content } = entry;
      const { type, base } = header;
      if (type !== undefined) {
        found = this.#keep(pack, at, { type, content });
        break;
      }
      deltas.push({ at, delta: content });
      const place = typeof base === "number" ? base : pack.index.find(base ?? "");
      if (place === undefined) return undefined;
      at = place;
    }
    // The objects of a chain are often read one after the other.
    for (const { at, delta } of deltas.reverse()) {
      found = this.#keep(pack, at, { type: found.type, content: applyDelta(found.content, delta) });
      this.count(found.content.length);
    }
    return found;
  }

  #keep({ name }: LoadedPack, at: number, object: GitObject): GitObject {
    this.caches.objects.set(`${name}:${at}`, object, object.content.length + OVERHEAD_BYTES);
    return object;
  }

  async #entryAt(
    pack: LoadedPack,
    offset: number,
  ): Promise<{ header: EntryHeader; content: Uint8Array } | undefined> {
    const end = pack.index.endOf(offset, pack.bytes);
    const bytes = await this.#range(pack, offset, end);
    if (bytes === undefined) return undefined;
    const header = readEntryHeader(bytes.subarray(0, MAX_HEADER_BYTES), offset, offset);
    this.count(header.size);
    return { header, content: inflate(bytes, header.data - offset, header.size).content };
  }

  async #range(pack: LoadedPack, start: number, end: number): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    for (let block = Math.floor(start / BLOCK_BYTES); block * BLOCK_BYTES < end; block++) {
      const bytes = await this.#block(pack, block);
      if (bytes === undefined) return undefined;
      const from = block * BLOCK_BYTES;
      parts.push(bytes.subarray(Math.max(0, start - from), end - from));
    }
    const [first] = parts;
    return parts.length === 1 ? first : concat(parts);
  }

  async #block(pack: LoadedPack, block: number): Promise<Uint8Array | undefined> {
    const key = `${pack.name}:${block}`;
    const cached = this.caches.blocks.get(key);
    if (cached !== undefined) return cached;
    const offset = block * BLOCK_BYTES;
    const length = Math.min(BLOCK_BYTES, pack.bytes - offset);
    const bytes = await this.source.part(pack, offset, length);
    if (bytes !== undefined) this.caches.blocks.set(key, bytes, length);
    return bytes;
  }
}

/** The objects of a commit that is not stored yet, over the stored objects. */
export class NewObjects implements ObjectReader {
  readonly added = new Map<string, GitObject>();
  #bytes = 0;

  constructor(private readonly stored: ObjectDatabase) {}

  get sizes(): ObjectDatabase["sizes"] {
    return this.stored.sizes;
  }

  async read(oid: string): Promise<GitObject> {
    return this.added.get(oid) ?? this.stored.read(oid);
  }

  /** Adds an object unless the repository has it, and returns its id. Throws `TOO_LARGE`. */
  async add(object: GitObject): Promise<string> {
    const oid = oidOf(object);
    if (this.added.has(oid) || (await this.stored.has(oid))) return oid;
    this.#bytes += object.content.length;
    if (this.#bytes > MAX_NEW_BYTES) {
      const message = `The new files and folders have more than ${MAX_NEW_BYTES} bytes. Merge or commit fewer changes at a time.`;
      throw tooLarge(message);
    }
    this.added.set(oid, object);
    return oid;
  }
}
