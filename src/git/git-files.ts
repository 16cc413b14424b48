/**
 * The files of a repository as git reads them from a plain web server ("dumb HTTP"): `git clone` and `git fetch` need no other program.
 *
 * GITFILES-1  The listed packs have every object of the listed branches and tags.
 */
import type { PackRow, RepositoryAddress } from "../d1/repositories.ts";
import { encode, sha1, toHex } from "./bytes.ts";
import { type GitPorts, StoredPacks } from "./stored-packs.ts";

export class GitFiles {
  readonly #packs: StoredPacks;

  constructor(
    private readonly ports: GitPorts,
    private readonly address: RepositoryAddress,
  ) {
    this.#packs = new StoredPacks(ports, address);
  }

  /** Returns `info/refs`: the branches and tags. */
  async references(): Promise<string> {
    const references = await this.ports.rows.references(this.address);
    return references.map(({ name, oid }) => `${oid}\t${name}\n`).join("");
  }

  /** Returns `objects/info/packs`: the names of the packs. */
  async packs(): Promise<string> {
    const rows = await this.ports.rows.packs(this.address);
    return `${rows.map((row) => `P ${fileOf(row)}.pack\n`).join("")}\n`;
  }

  /** Returns a pack or its index by the name of its file; `null` without it. */
  async pack(file: string): Promise<Uint8Array | null> {
    const [name, kind] = file.split(".");
    if (kind !== "pack" && kind !== "idx") return null;
    const row = (await this.ports.rows.packs(this.address)).find((each) => fileOf(each) === name);
    return row === undefined ? null : this.#packs.file(row, kind);
  }
}

/** Returns the name of a pack's file. Git expects 40 hexadecimal digits. */
function fileOf({ name }: PackRow): string {
  return `pack-${toHex(sha1(encode(name)))}`;
}
