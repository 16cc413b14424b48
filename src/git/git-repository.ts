/**
 * A git repository: packs in an object store, references in D1.
 *
 * GIT-2  Of commits that start at one head, one wins. The others are told that the branch has moved.
 * GIT-3  A commit that is repeated with the same input has the same id, and succeeds again.
 * GIT-4  Many small packs become one pack, so a repository has few packs.
 */
import type { PackRow, Reference, ReferenceMove, RepositoryAddress, Rider } from "../d1/repositories.ts";
import type { BranchMergeStrategy } from "../protocol/workspace.ts";
import { branchProblem } from "../shared/branch-problem.ts";
import { conflict, invalid, notFound, tooLarge } from "../shared/errors.ts";
import { type Bundle, encodeBundle, readBundle } from "./bundle.ts";
import { GitCaches } from "./caches.ts";
import { checkHistory } from "./check-history.ts";
import { ancestorsOf, commitOf, type LoggedCommit, mergeBase } from "./history.ts";
import { HEADS, movesOf } from "./import-moves.ts";
import {
  MAX_BUNDLE_BYTES,
  MAX_CHANGES,
  MAX_COMMIT_BYTES,
  MAX_EXPORT_BYTES,
  MAX_OBJECT_BYTES,
  MAX_READ_BYTES,
} from "./limits.ts";
import { type Conflicts, merged } from "./merge.ts";
import { contentOf, NewObjects, ObjectDatabase, type PackSource } from "./object-database.ts";
import { encodeCommit, type Identity } from "./objects.ts";
import { isInHistory, outgoingPack } from "./outgoing.ts";
import { byteLimit, indexPack, KEPT_BYTES } from "./pack.ts";
import { encodeIndex, type Pack, PackIndex } from "./pack-index.ts";
import { joinPacks, partOf, writePack } from "./pack-writer.ts";
import { pathProblem } from "./path-problem.ts";
import { ATTEMPTS, busy, type GitPorts, StoredPacks } from "./stored-packs.ts";
import { type Change, type Entry, fileAt, filesOf, type TreeFile, treeWith } from "./trees.ts";

/** A commit to make. Its files are the files of its first parent with the changes. */
export interface CommitInput {
  parents: string[];
  /** By paths. */
  changes: ReadonlyMap<string, Change>;
  message: string;
  author: Identity;
  /** Milliseconds since the epoch. Git stores seconds. */
  at: number;
  /** If no file changes, no commit is made, and the first parent is the result. */
  skipsEmpty?: true;
}

/** A branch and its newest commit. */
export interface Branch {
  name: string;
  oid: string;
}

/** A repository with this many packs gets one pack instead of its smallest packs. */
const MAX_PACKS = 16;
const MAX_JOINED_BYTES = 16 * 1_024 * 1_024;

/** Keep an instance while you use a repository: it keeps the list of its packs. */
export class GitRepository {
  readonly #packs: StoredPacks;
  readonly #objects: ObjectDatabase;

  constructor(
    private readonly ports: GitPorts,
    private readonly address: RepositoryAddress,
  ) {
    this.#packs = new StoredPacks(ports, address);
    this.#objects = new ObjectDatabase(this.#packs, ports.caches);
  }

  /** Returns the newest commit of a branch; `null` without the branch. */
  head(branch: string): Promise<string | null> {
    return this.ports.rows.reference(this.address, HEADS + branch);
  }

  async branches(): Promise<Branch[]> {
    const references = await this.ports.rows.references(this.address);
    return references
      .filter(({ name }) => name.startsWith(HEADS))
      .map(({ name, oid }) => ({ name: name.slice(HEADS.length), oid }));
  }

  /** Creates a branch at a commit. Returns `false` if the branch is at another commit. */
  async createBranch(branch: string, at: string): Promise<boolean> {
    checkBranch(branch);
    await commitOf(this.#objects, at);
    return this.ports.rows.move(this.address, [{ name: HEADS + branch, from: null, to: at }]);
  }

  /** Deletes a branch; with `at`, only at this commit. Its commits stay readable by their ids. */
  deleteBranch(branch: string, at?: string): Promise<void> {
    return this.ports.rows.deleteReference(this.address, HEADS + branch, at);
  }

  /** Returns the files of a commit by their paths, without submodules. Throws `NOT_FOUND` without the commit. */
  async tree(commit: string): Promise<ReadonlyMap<string, TreeFile>> {
    return filesOf(this.#objects, (await commitOf(this.#objects, commit)).tree);
  }

  /** Returns a file of a commit; `null` without the file. Throws `NOT_FOUND` without the commit. */
  async file(commit: string, path: string): Promise<TreeFile | null> {
    return fileAt(this.#objects, (await commitOf(this.#objects, commit)).tree, path);
  }

  /** Returns the content of a file. Throws `NOT_FOUND` without the object, and `INVALID_INPUT` if it is no file. */
  async blob(oid: string): Promise<Uint8Array> {
    return (await contentOf(this.#objects, oid, "blob")).slice();
  }

  /** Returns a commit and its ancestors, the newest first. */
  async log(commit: string, limit: number): Promise<LoggedCommit[]> {
    const commits: LoggedCommit[] = [];
    if (limit < 1) return commits;
    for await (const each of ancestorsOf(this.#objects, commit)) if (commits.push(each) >= limit) break;
    return commits;
  }

  /**
   * Commits to a branch whose newest commit is `from`; `null` for a new branch. Returns `moved` if it has another (GIT-2). Throws
   * `INVALID_INPUT` for a path or a name that git or a file system refuses, and `TOO_LARGE`.
   */
  async commit(
    branch: string,
    from: string | null,
    input: CommitInput,
    riders: readonly Rider[] = [],
  ): Promise<{ oid: string } | "moved"> {
    checkBranch(branch);
    checkChanges(input.changes);
    const objects = new NewObjects(this.#objects);
    const { parents, changes, message, author, at, skipsEmpty } = input;
    const [first] = await Promise.all(parents.map((parent) => commitOf(objects, parent)));
    const base = first?.tree ?? null;
    const entries = new Map<string, Entry>();
    for (const [path, change] of changes) {
      const { content, ...mode } = change ?? {};
      const blob = content && { oid: await objects.add({ type: "blob", content }), ...mode };
      entries.set(path, blob ?? null);
    }
    const tree = await treeWith(objects, base, entries);
    if (skipsEmpty && tree === base && from !== null) return { oid: from };
    const oid = await objects.add({
      type: "commit",
      content: encodeCommit({ tree, parents, message, author, at }),
    });
    const hasMoved = await this.#publish([{ name: HEADS + branch, from, to: oid }], objects, riders);
    return hasMoved ? { oid } : "moved";
  }

  /**
   * Returns the repository as a bundle: all branches and tags, and `HEAD` at the default branch. Throws `NOT_FOUND` without a commit, and
   * `TOO_LARGE`.
   */
  async exportBundle(): Promise<Uint8Array> {
    const references = await this.ports.rows.references(this.address);
    if (references.length === 0) throw notFound("The repository has no commits yet. Commit a file first.");
    const view = await this.ports.rows.repository(this.address);
    const head = references.find(({ name }) => name === `${HEADS}${view?.defaultBranch}`);
    return encodeBundle({
      references: [...(head === undefined ? [] : [{ oid: head.oid, name: "HEAD" }]), ...references],
      pack: await this.#wholePack(),
    });
  }

  /**
   * Adds the branches and tags of a bundle. A branch of the repository must be in the history of the bundle's branch. A repository
   * without branches gets the default branch of the bundle. Throws `INVALID_INPUT`, `TOO_LARGE` and `CONFLICT`. Then the repository is as before.
   */
  async importBundle(bytes: Uint8Array): Promise<{ branches: Branch[] }> {
    if (bytes.length > MAX_BUNDLE_BYTES)
      throw tooLarge(`A bundle has at most ${MAX_BUNDLE_BYTES} bytes. Leave out a part.`);
    return this.importHistory(readBundle(bytes));
  }

  /** Adds the branches and tags of a whole history, as `importBundle`. */
  async importHistory({ references, pack }: Bundle): Promise<{ branches: Branch[] }> {
    const wanted = references.filter(({ name }) => /^refs\/(?:heads|tags)\//.test(name));
    if (wanted.length === 0)
      throw invalid("The history has no branches. Commit first, and make a bundle with --all.");
    for (const { name } of wanted) checkBranch(name.replace(/^refs\/\w+\//, ""));
    const incoming = indexPack(pack);
    const index = new PackIndex(encodeIndex(incoming));
    const objects = databaseOf(incoming, index);
    const reached = await checkHistory(objects, index, incoming.types, wanted);
    const present = await this.ports.rows.references(this.address);
    const moves = await movesOf(objects, present, wanted);
    const isNew = await this.#missing(incoming, reached, objects);
    const hasMoved =
      isNew === null ? await this.ports.rows.move(this.address, moves) : await this.#store(moves, isNew);
    if (!hasMoved)
      throw conflict("Another writer moved a branch. Send the request again.", {
        retriable: true,
      });
    if (!present.some(({ name }) => name.startsWith(HEADS))) await this.#adoptDefaultBranch(references);
    return { branches: await this.branches() };
  }

  /**
   * Returns the part of a pack to store: all, or the missing objects if the repository has most, or if some are not reached; `null` if
   * it has all.
   */
  async #missing(pack: Pack, reached: readonly string[], incoming: ObjectDatabase): Promise<Pack | null> {
    const missing = new Set<string>();
    for (const oid of reached) if (!(await this.#objects.has(oid))) missing.add(oid);
    if (reached.length === pack.entries.length && missing.size * 2 > reached.length) return pack;
    return missing.size === 0 ? null : partOf(pack, missing, (oid) => incoming.read(oid));
  }

  async #adoptDefaultBranch(references: readonly Reference[]): Promise<void> {
    const view = await this.ports.rows.repository(this.address);
    const branches = references.filter(({ name }) => name.startsWith(HEADS));
    const names = branches.map(({ name }) => name.slice(HEADS.length));
    if (view === null || names.includes(view.defaultBranch)) return;
    const head = references.find(({ name }) => name === "HEAD");
    const branch = names[branches.findIndex(({ oid }) => oid === head?.oid)] ?? names[0];
    if (branch !== undefined) await this.ports.rows.setDefaultBranch(this.address, branch);
  }

  /** Returns one pack with all objects. Throws `TOO_LARGE`. */
  async #wholePack(): Promise<Uint8Array> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const packs = await this.#objects.reload();
      const bytes = packs.reduce((sum, pack) => sum + pack.bytes, 0);
      if (bytes > MAX_EXPORT_BYTES)
        throw tooLarge(
          `The repository has ${bytes} bytes. The export has at most ${MAX_EXPORT_BYTES} bytes.`,
        );
      const found = await this.#packs.contents(packs);
      if (found !== undefined) return joinPacks(found).bytes;
    }
    throw busy();
  }

  /**
   * Returns the newest commit of a branch, and a pack for a repository that has the `known` commits. Throws `NOT_FOUND`, `TOO_LARGE`, and `CONFLICT`
   * if the branch lacks the commit `from`.
   */
  async outgoing(branch: string, from: string | null, known: readonly string[]) {
    const oid = await this.#headOf(branch);
    if (from !== null && !(await isInHistory(this.#objects, from, oid)))
      throw conflict(
        `The branch of the remote has commits that ${JSON.stringify(branch)} lacks. Fetch it and merge it, or push to another branch.`,
      );
    const { bytes } = await outgoingPack(this.#objects, oid, new Set(known));
    return { oid, pack: bytes };
  }

  /** Returns a newest common ancestor of two commits; `null` without one. */
  mergeBase(one: string, other: string): Promise<string | null> {
    return mergeBase(this.#objects, one, other);
  }

  /**
   * Merges a branch into another branch (GITMERGE-1, GITMERGE-2, GITMERGE-3). Returns the newest commit of both, or the conflicts, or
   * `moved` if another writer moved one of them meanwhile. Conflicts change nothing. Throws `NOT_FOUND` without one of the branches.
   */
  async merge(
    into: string,
    branch: string,
    strategy: BranchMergeStrategy,
    author: Identity,
    at: number,
  ): Promise<{ oid: string } | Conflicts | "moved"> {
    const [ours, theirs] = [await this.#headOf(into), await this.#headOf(branch)];
    const objects = new NewObjects(this.#objects);
    const message = `Merge branch '${branch}' into ${into}`;
    const result = await merged(objects, { ours, theirs, strategy, message, author, at });
    if ("conflicts" in result) return result;
    const moves = [
      { name: HEADS + into, from: ours, to: result.oid },
      { name: HEADS + branch, from: theirs, to: result.oid },
    ];
    return (await this.#publish(moves, objects)) ? result : "moved";
  }

  async #headOf(branch: string): Promise<string> {
    const head = await this.head(branch);
    if (head !== null) return head;
    throw notFound(`The repository has no branch ${JSON.stringify(branch)}.`);
  }

  /** Stores new objects, and moves references to them (GIT-1). */
  async #publish(
    moves: ReferenceMove[],
    { added }: NewObjects,
    riders: readonly Rider[] = [],
  ): Promise<boolean> {
    if (added.size === 0) return this.ports.rows.move(this.address, moves, { riders });
    return this.#store(moves, writePack(added), riders);
  }

  async #store(moves: ReferenceMove[], pack: Pack, riders: readonly Rider[] = []): Promise<boolean> {
    const { pack: joined, replaced } = await this.#joined(pack);
    const stored = await this.#packs.store(moves, joined, replaced, riders);
    if (stored !== undefined) await this.#objects.add(stored, joined.bytes, replaced);
    return stored !== undefined;
  }

  /** Returns a pack, joined with the smallest packs if there are many (GIT-4). */
  async #joined(pack: Pack): Promise<{ pack: Pack; replaced: PackRow[] }> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const packs = await (attempt === 0 ? this.#objects.packs() : this.#objects.reload());
      if (packs.length < MAX_PACKS) break;
      const small = smallest(packs, pack.bytes.length);
      const found = await this.#packs.contents(small);
      if (found === undefined) continue;
      const own = { bytes: pack.bytes, index: new PackIndex(encodeIndex(pack)) };
      return { pack: joinPacks([...found, own]), replaced: small };
    }
    return { pack, replaced: [] };
  }
}

/** Returns the packs to join with a pack of `bytes`, oldest first. */
function smallest<Row extends PackRow>(packs: readonly Row[], bytes: number): Row[] {
  const chosen = new Set<Row>();
  let left = MAX_JOINED_BYTES - bytes;
  for (const pack of packs.toSorted((one, other) => one.bytes - other.bytes)) {
    left -= pack.bytes;
    if (left < 0 || chosen.size >= MAX_PACKS - 4) break;
    chosen.add(pack);
  }
  return packs.filter((pack) => chosen.has(pack));
}

function databaseOf({ bytes }: Pack, index: PackIndex): ObjectDatabase {
  const source: PackSource = {
    list: async () => [{ name: "incoming", bytes: bytes.length, index }],
    part: async (_, offset, length) => bytes.subarray(offset, offset + length),
  };
  return new ObjectDatabase(source, new GitCaches(KEPT_BYTES), byteLimit(MAX_READ_BYTES));
}

function checkBranch(branch: string): void {
  const problem = branchProblem(branch);
  if (problem !== undefined) throw invalid(`${JSON.stringify(branch)} ${problem}`);
}

function checkChanges(changes: ReadonlyMap<string, Change>): void {
  if (changes.size > MAX_CHANGES)
    throw tooLarge(`A commit changes at most ${MAX_CHANGES} files. Make several commits.`);
  let bytes = 0;
  for (const [path, change] of changes) {
    const problem = pathProblem(path);
    if (problem !== undefined) throw invalid(`${JSON.stringify(path)} ${problem}`);
    const size = change?.content.length ?? 0;
    if (size > MAX_OBJECT_BYTES)
      throw tooLarge(`"${path}" has more than ${MAX_OBJECT_BYTES} bytes. Leave it out.`);
    bytes += size;
  }
  if (bytes > MAX_COMMIT_BYTES)
    throw tooLarge(`The files of a commit have at most ${MAX_COMMIT_BYTES} bytes. Make several commits.`);
}
