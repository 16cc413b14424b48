/**
 * The packs of a repository in an object store, and their rows in D1.
 *
 * GIT-1  Objects are stored first. Then one transaction moves the references and writes the row of the pack. A crash between them leaves
 *        an unused pack, and the repository as it was.
 * GIT-5  A day later, the next join of packs deletes unused packs.
 */
import { decodeTime } from "ulid";
import type { D1Repositories, PackRow, ReferenceMove, RepositoryAddress, Rider } from "../d1/repositories.ts";
import type { Ids } from "../ports/ids.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import { type DramatisError, unavailable } from "../shared/errors.ts";
import type { GitCaches } from "./caches.ts";
import type { LoadedPack, PackSource } from "./object-database.ts";
import { encodeIndex, type Pack, PackIndex } from "./pack-index.ts";

export interface GitPorts {
  rows: D1Repositories;
  objects: ObjectStore;
  ids: Ids;
  /** The data that repositories have read. Without it, each repository reads for itself. */
  caches?: GitCaches;
}

/** The age of a pack without a row after which no writer needs it, in milliseconds. */
export const UNUSED_MS = 24 * 60 * 60 * 1_000;
/** A collection reads at most this number of keys, of the oldest packs. */
const MAX_LISTED = 1_000;
const NAME = /^pack-([0-9a-z]{26})$/;

/** Attempts to read packs that other writers replace. */
export const ATTEMPTS = 3;

/** Returns the error after the last attempt. */
export function busy(): DramatisError {
  return unavailable("Other writers change the repository. Try again in a moment.", {
    retriable: true,
  });
}

export class StoredPacks implements PackSource {
  readonly #prefix: string;

  constructor(
    private readonly ports: GitPorts,
    private readonly address: RepositoryAddress,
  ) {
    const { tenant, project, repo } = address;
    this.#prefix = `git/${[tenant, project, repo].map(encodeURIComponent).join("/")}/`;
  }

  async list(known: readonly LoadedPack[]): Promise<LoadedPack[]> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const rows = await this.ports.rows.packs(this.address);
      const loaded = rows.map(async (row) => {
        const pack = known.find(({ name }) => name === row.name);
        if (pack !== undefined) return pack;
        const index = await this.#index(row);
        return index && { ...row, index };
      });
      const packs = await Promise.all(loaded);
      // Another writer replaced a pack without an index after the read of the rows.
      if (packs.every((pack) => pack !== undefined)) return packs;
    }
    throw busy();
  }

  async #index(pack: PackRow): Promise<PackIndex | undefined> {
    const cached = this.ports.caches?.indexes.get(pack.name);
    if (cached !== undefined) return cached;
    const bytes = await this.file(pack, "idx");
    if (bytes === null) return undefined;
    const index = new PackIndex(bytes);
    this.ports.caches?.indexes.set(pack.name, index, bytes.length);
    return index;
  }

  async part(pack: PackRow, offset: number, length: number): Promise<Uint8Array | undefined> {
    return (await this.ports.objects.get(this.#key(pack, "pack"), { offset, length }))?.bytes;
  }

  /** Returns a pack or its index; `null` if another writer has replaced it. */
  async file(pack: PackRow, kind: "pack" | "idx"): Promise<Uint8Array | null> {
    return (await this.ports.objects.get(this.#key(pack, kind)))?.bytes ?? null;
  }

  /** Returns packs with their bytes; `undefined` if another writer has replaced one. */
  async contents(
    packs: readonly LoadedPack[],
  ): Promise<{ bytes: Uint8Array; index: PackIndex }[] | undefined> {
    const found: { bytes: Uint8Array; index: PackIndex }[] = [];
    for (const pack of packs) {
      const bytes = await this.file(pack, "pack");
      if (bytes === null) return undefined;
      found.push({ bytes, index: pack.index });
    }
    return found;
  }

  /** Stores a pack in place of other packs, and moves references. Returns the stored pack; `undefined` if a reference is elsewhere. */
  async store(
    moves: readonly ReferenceMove[],
    pack: Pack,
    replaced: readonly PackRow[],
    riders: readonly Rider[],
  ): Promise<LoadedPack | undefined> {
    const row = { name: `pack-${this.ports.ids.ulid().toLowerCase()}`, bytes: pack.bytes.length };
    const index = encodeIndex(pack);
    await Promise.all([
      this.ports.objects.put(this.#key(row, "pack"), pack.bytes, {}),
      this.ports.objects.put(this.#key(row, "idx"), index, {}),
    ]);
    const removed = replaced.map(({ name }) => name);
    const hasMoved = await this.ports.rows.move(this.address, moves, { added: [row], removed, riders });
    // After a failure, the next collection deletes them.
    await this.delete((hasMoved ? replaced : [row]).map(({ name }) => name)).catch(() => undefined);
    if (replaced.length > 0) await this.collect().catch(() => undefined);
    return hasMoved ? { ...row, index: new PackIndex(index) } : undefined;
  }

  /** Deletes packs without rows, by their names. */
  async delete(names: readonly string[]): Promise<void> {
    const keys = names.flatMap((name) => [this.#key({ name }, "pack"), this.#key({ name }, "idx")]);
    await Promise.all(keys.map((key) => this.ports.objects.delete(key)));
  }

  /** Deletes packs that have no row, and that are older than the longest commit (GIT-5). */
  async collect(): Promise<void> {
    const now = decodeTime(this.ports.ids.ulid());
    const rows = new Set((await this.ports.rows.packs(this.address)).map(({ name }) => name));
    for (const key of await this.ports.objects.list(this.#prefix, MAX_LISTED)) {
      const [name = ""] = key.slice(this.#prefix.length).split(".");
      const [, ulid] = NAME.exec(name) ?? [];
      if (ulid === undefined || rows.has(name) || decodeTime(ulid.toUpperCase()) > now - UNUSED_MS) continue;
      await this.ports.objects.delete(key);
    }
  }

  #key({ name }: Pick<PackRow, "name">, kind: "pack" | "idx"): string {
    return `${this.#prefix}${name}.${kind}`;
  }
}
