/**
 * `WorkingTree`: the files of a commit with changes on top. It holds no oids of new content and does no I/O except the reads of blobs.
 *
 * TREE-1  A path is relative to the root. No operation reads or writes outside the root. Such a path, and a symbolic link that leaves the root, are
 *         denied by the rule `sandbox`.
 * TREE-2  A failed operation changes nothing.
 * TREE-3  A change that restores the content and the mode of the commit is no change.
 * TREE-4  No path is a file and a folder at once.
 * TREE-5  A tree without sensitive files lists, reads and writes none of them, also not through a link. The rule `sensitive-file` denies it.
 * TREE-6  At most `MAX_CHANGES` files are changed, with at most `MAX_CHANGED_BYTES`. A change costs no scan of the other files.
 */
import { decodeText } from "../../../git/bytes.ts";
import { MAX_CHANGES } from "../../../git/limits.ts";
import { DramatisError, invalid, notFound, tooLarge } from "../../../shared/errors.ts";
import { outside, segmentsOf, treePath } from "./tree-path.ts";

/** A file, a program, or a symbolic link, as Git writes them. */
export type FileMode = "100644" | "100755" | "120000";

export interface BaseFile {
  readonly oid: string;
  readonly mode: string;
}

export interface TreeFile {
  readonly content: Uint8Array;
  readonly mode: FileMode;
}

/** Changed files by path; `null` if the file is deleted. */
export type Changes = ReadonlyMap<string, TreeFile | null>;

export type ChangeKind = "added" | "modified" | "deleted";

/** Bytes of one file. A row of SQLite holds 2 MB. */
const MAX_FILE_BYTES = 1_900_000;
/** Bytes of all changed files, because an actor holds them in memory. */
const MAX_CHANGED_BYTES = 32 * 1024 * 1024;

const MAX_LINKS = 40;
/** Bytes of the target of a symbolic link. Linux has this limit. */
const MAX_TARGET_BYTES = 4_095;
/** Segments of a path. A path has at most 1,024 characters. */
const MAX_DEPTH = 512;

export class WorkingTree {
  readonly #base: ReadonlyMap<string, BaseFile>;
  readonly #blob: (oid: string) => Promise<Uint8Array>;
  readonly #changes = new Map<string, TreeFile | null>();
  readonly #isSensitive: (path: string) => boolean;
  /** The files and folders in each folder, minus those of the commit. */
  readonly #moreChildren = new Map<string, number>();
  #changedBytes = 0;

  /** `blob` returns the content of a file of the commit. */
  constructor(
    base: ReadonlyMap<string, BaseFile>,
    blob: (oid: string) => Promise<Uint8Array>,
    changes: Changes = new Map(),
    isSensitive: (path: string) => boolean = () => false,
  ) {
    this.#base = base;
    this.#blob = blob;
    this.#isSensitive = isSensitive;
    for (const [path, file] of changes) this.#set(path, file);
  }

  get changes(): Changes {
    return this.#changes;
  }

  get changedBytes(): number {
    return this.#changedBytes;
  }

  fork(): WorkingTree {
    return this.with(this.#changes);
  }

  /** Returns a tree of the same commit with other changes. */
  with(changes?: Changes): WorkingTree {
    return new WorkingTree(this.#base, this.#blob, changes, this.#isSensitive);
  }

  /** Returns a copy without sensitive files (TREE-5). */
  without(isSensitive: (path: string) => boolean): WorkingTree {
    return new WorkingTree(this.#base, this.#blob, this.#changes, isSensitive);
  }

  /** Throws `PERMISSION_DENIED` for a sensitive file (TREE-5). */
  checkAllowed(path: string): void {
    if (this.#isSensitive(path))
      throw new DramatisError(
        "PERMISSION_DENIED",
        `"${path}" is a sensitive file. Work without it, or ask a person with the role \`author\`.`,
        { rule: "sensitive-file" },
      );
  }

  /** Returns the kind of each change, in the order of the paths. */
  status(): { path: string; change: ChangeKind }[] {
    return [...this.#changes]
      .map(([path, file]) => ({
        path,
        change: file === null ? "deleted" : this.#base.has(path) ? "modified" : "added",
      }))
      .sort(byPath) as { path: string; change: ChangeKind }[];
  }

  /** Returns the paths of all files below a folder, in order. The folder "" is the root. */
  paths(folder = ""): string[] {
    const prefix = folder === "" ? "" : `${folder}/`;
    const paths = [...this.#base.keys()].filter((path) => !this.#changes.has(path));
    for (const [path, file] of this.#changes) if (file !== null) paths.push(path);
    return paths.filter((path) => path.startsWith(prefix) && !this.#isSensitive(path)).sort();
  }

  /** Returns the mode of the file at a path, and its oid if it is unchanged; `undefined` if there is no file. Follows no links. */
  entry(path: string): { mode: FileMode; oid?: string } | undefined {
    const changed = this.#changes.get(path);
    if (changed !== undefined) return changed === null ? undefined : { mode: changed.mode };
    const base = this.#base.get(path);
    // SAFETY: the commit was written by Git, and other modes are left out of its tree.
    return base && { mode: base.mode as FileMode, oid: base.oid };
  }

  isFolder(path: string): boolean {
    if (path === "") return true;
    return (childrenOf(this.#base).get(path) ?? 0) + (this.#moreChildren.get(path) ?? 0) > 0;
  }

  /** Returns the file at a path as it is stored. Follows no links. Throws `NOT_FOUND`. */
  async file(path: string): Promise<TreeFile> {
    this.checkAllowed(path);
    const changed = this.#changes.get(path);
    if (changed) return changed;
    const entry = this.entry(path);
    if (entry?.oid === undefined) throw this.#absent(path);
    return { content: await this.#blob(entry.oid), mode: entry.mode };
  }

  /** Returns the content of a file. Follows links. Throws `NOT_FOUND`, or `INVALID_INPUT` for a folder or a link that leaves the root. */
  async read(given: string): Promise<Uint8Array> {
    const path = await this.resolve(given);
    if (this.entry(path) === undefined && this.isFolder(path))
      throw invalid(`"${given}" is a folder. Name a file in it.`);
    return (await this.file(path)).content;
  }

  /** Writes a file, and creates its folders. Follows links. A new file has the mode `mode`, an existing file keeps its own mode by default. */
  async write(given: string, content: Uint8Array, mode?: FileMode): Promise<string> {
    const path = await this.resolve(given);
    if (path === "") throw invalid("The path is the root. Name a file.");
    await this.put(path, { content, mode: mode ?? this.entry(path)?.mode ?? "100644" });
    return path;
  }

  /** Stores a file at a path without links. Throws `TOO_LARGE`, or `INVALID_INPUT` if Git refuses the path or a folder is in the way. */
  async put(given: string, file: TreeFile): Promise<void> {
    const path = treePath(given);
    this.checkAllowed(path);
    const current = this.#changes.get(path);
    if (current && current.mode === file.mode && isEqual(current.content, file.content)) return;
    const { byteLength } = file.content;
    if (byteLength > MAX_FILE_BYTES)
      throw tooLarge(
        `"${path}" has ${byteLength} bytes. The limit of a file is ${MAX_FILE_BYTES}. Split it.`,
      );
    const others = this.#changedBytes - (current?.content.byteLength ?? 0);
    if (others + byteLength > MAX_CHANGED_BYTES)
      throw tooLarge(`The uncommitted files have more than ${MAX_CHANGED_BYTES} bytes. Commit first.`);
    for (const parent of parentsOf(path)) {
      // The folders above a folder are no files (TREE-4).
      if (this.isFolder(parent)) break;
      if (this.entry(parent) !== undefined)
        throw invalid(`"${parent}" is a file, so it cannot contain "${path}".`);
    }
    if (this.isFolder(path)) throw invalid(`"${path}" is a folder. Choose another path.`);
    const base = this.#base.get(path);
    const isRestored =
      base !== undefined && base.mode === file.mode && isEqual(await this.#blob(base.oid), file.content);
    if (!isRestored && current === undefined) this.#checkRoom(1);
    this.#set(path, isRestored ? undefined : file);
  }

  /**
   * Replaces a text that occurs once, or each occurrence with `all`. Returns the number of the first changed line. Throws `INVALID_INPUT` if
   * the text occurs never or several times.
   */
  async edit(
    given: string,
    { before, after, all = false }: { before: string; after: string; all?: boolean },
  ): Promise<{ path: string; line: number; count: number }> {
    const text = decodeText(await this.read(given));
    if (text === undefined) throw invalid(`"${given}" is not UTF-8 text. Write the whole file instead.`);
    if (before === "") throw invalid("The text to replace is empty. Give the exact text.");
    if (before === after) throw invalid("The new text equals the old text. Give another text.");
    const parts = text.split(before);
    const count = parts.length - 1;
    const lines = linesOfCuts(parts, before);
    if (count === 0)
      throw invalid(
        `"${given}" does not contain this text. Read the file, and copy the text with its spaces.`,
      );
    if (count > 1 && !all)
      throw invalid(
        `"${given}" contains this text ${count} times, in the lines ${lines.slice(0, 10).join(", ")}. Add the lines around it, or set \`all\`.`,
      );
    const length = text.length + count * (after.length - before.length);
    if (length > MAX_FILE_BYTES)
      throw tooLarge(
        `"${given}" would have ${length} characters. The limit of a file is ${MAX_FILE_BYTES} bytes. Split it.`,
      );
    const path = await this.write(given, new TextEncoder().encode(parts.join(after)));
    return { path, line: lines[0] ?? 1, count };
  }

  /** Deletes a file, a link, or a folder with all files. Returns the number of deleted files. Throws `NOT_FOUND`. */
  async remove(given: string): Promise<number> {
    const path = await this.#place(given);
    const paths = this.entry(path) === undefined ? this.paths(path) : [path];
    if (paths.length === 0) throw this.#absent(path);
    this.drop(paths);
    return paths.length;
  }

  /** Deletes the files at paths without links. */
  drop(paths: readonly string[]): void {
    for (const each of paths) this.checkAllowed(each);
    const isNew = (each: string) => !this.#base.has(each);
    const added = paths.filter((each) => !isNew(each) && !this.#changes.has(each)).length;
    this.#checkRoom(added - paths.filter(isNew).length);
    for (const each of paths) this.#set(each, isNew(each) ? undefined : null);
  }

  /** Returns the path of the file that a path names, after all links. Throws `INVALID_INPUT` (TREE-1). */
  async resolve(given: string): Promise<string> {
    let links = 0;
    // The next segment is at the end.
    const rest = segmentsOf(treePath(given)).reverse();
    const path: string[] = [];
    for (let segment = rest.pop(); segment !== undefined; segment = rest.pop()) {
      if (segment === "..") {
        if (path.pop() === undefined) throw leavesByLink(given);
        continue;
      }
      path.push(segment);
      if (path.length > MAX_DEPTH)
        throw invalid(`"${given}" has more than ${MAX_DEPTH} folders after its symbolic links.`);
      const here = path.join("/");
      if (this.entry(here)?.mode !== "120000") continue;
      links += 1;
      if (links > MAX_LINKS) throw invalid(`"${given}" has more than ${MAX_LINKS} symbolic links in a row.`);
      const { content } = await this.file(here);
      const target = content.byteLength > MAX_TARGET_BYTES ? undefined : decodeText(content);
      if (target === undefined)
        throw invalid(
          `The target of the symbolic link "${here}" is no text of at most ${MAX_TARGET_BYTES} bytes.`,
        );
      if (target.startsWith("/")) throw leavesByLink(given);
      path.pop();
      rest.push(...segmentsOf(target).reverse());
    }
    return treePath(path.join("/"));
  }

  /** Replaces all changes by those of another tree of the same commit. */
  adopt(other: WorkingTree): void {
    for (const path of [...this.#changes.keys()]) if (!other.#changes.has(path)) this.#set(path, undefined);
    for (const [path, file] of other.#changes) this.#set(path, file);
  }

  /** Stores the change of a path, or drops it, and keeps the sums. */
  #set(path: string, file: TreeFile | null | undefined): void {
    const before = this.entry(path) === undefined ? 0 : 1;
    this.#changedBytes +=
      (file?.content.byteLength ?? 0) - (this.#changes.get(path)?.content.byteLength ?? 0);
    if (file === undefined) this.#changes.delete(path);
    else this.#changes.set(path, file);
    const more = (this.entry(path) === undefined ? 0 : 1) - before;
    if (more === 0) return;
    for (const parent of parentsOf(path)) {
      const wasFolder = this.isFolder(parent);
      this.#moreChildren.set(parent, (this.#moreChildren.get(parent) ?? 0) + more);
      if (this.isFolder(parent) === wasFolder) break;
    }
  }

  /** Throws `TOO_LARGE` if there is no room for more changes (TREE-6). */
  #checkRoom(more: number): void {
    if (more > 0 && this.#changes.size + more > MAX_CHANGES)
      throw tooLarge(
        `More than ${MAX_CHANGES} files would be changed and not committed. Commit first, or delete new files.`,
      );
  }

  /** Returns the path with the links of its folders resolved. A link at its end stays. */
  async #place(given: string): Promise<string> {
    const path = treePath(given);
    const at = path.lastIndexOf("/");
    if (at === -1) return path;
    return `${await this.resolve(path.slice(0, at))}/${path.slice(at + 1)}`.replace(/^\//, "");
  }

  #absent(path: string): DramatisError {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const similar = this.paths()
      .filter((each) => each === name || each.endsWith(`/${name}`))
      .slice(0, 3);
    const hint =
      similar.length === 0 ? "" : ` Did you mean ${similar.map((each) => `"${each}"`).join(", ")}?`;
    return notFound(`There is no file "${path}".${hint}`);
  }
}

export function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.byteLength === other.byteLength && one.every((byte, index) => byte === other[index]);
}

/** The number of files and folders in each folder, by the files of a commit. */
const known = new WeakMap<ReadonlyMap<string, BaseFile>, ReadonlyMap<string, number>>();

function childrenOf(files: ReadonlyMap<string, BaseFile>): ReadonlyMap<string, number> {
  const found = known.get(files);
  if (found !== undefined) return found;
  const children = new Map<string, number>();
  for (const path of files.keys()) {
    for (const parent of parentsOf(path)) {
      const others = children.get(parent) ?? 0;
      children.set(parent, others + 1);
      if (others > 0) break;
    }
  }
  known.set(files, children);
  return children;
}

/** Returns the folders of a path, the nearest first. The root is left out. */
function* parentsOf(path: string): Generator<string> {
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) yield path.slice(0, at);
}

/** Returns the line of each place where `parts` were cut by `by`. */
function linesOfCuts(parts: readonly string[], by: string): number[] {
  const breaks = (text: string) => text.split("\n").length - 1;
  let line = 1;
  return parts.slice(0, -1).map((part) => {
    line += breaks(part);
    const found = line;
    line += breaks(by);
    return found;
  });
}

function byPath(one: { path: string }, other: { path: string }): number {
  return one.path < other.path ? -1 : 1;
}

function leavesByLink(path: string): DramatisError {
  return outside(`"${path}" leaves the repository by a symbolic link.`);
}
