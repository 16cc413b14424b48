/**
 * The folders of commits: their files, and changes of files.
 *
 * GITTREE-1  A commit with more files than a list may have is refused. So each branch can be opened.
 */
import { type DramatisError, invalid, tooLarge } from "../shared/errors.ts";
import type { GitCaches, TreeSize } from "./caches.ts";
import { MAX_LISTED } from "./limits.ts";
import { contentOf, type NewObjects, type ObjectReader } from "./object-database.ts";
import { encodeTree, type FileMode, FOLDER, readTree, SUBMODULE, type TreeEntry } from "./objects.ts";

export interface TreeFile {
  oid: string;
  mode: string;
}

/** A changed file: its new content or object, or `null` if it is deleted. Without a mode, an executable file stays executable. */
export type Change = { content: Uint8Array; mode?: FileMode } | null;

/** The longest path that is listed, in UTF-16 units. */
const MAX_PATH_LENGTH = 4_096;
/** An estimate of the memory of a known size. */
const SIZE_BYTES = 150;

/** Returns the files below a tree by their paths, without submodules. Throws `TOO_LARGE` for too many entries, or too long paths. */
export async function filesOf(objects: ObjectReader, tree: string): Promise<Map<string, TreeFile>> {
  const files = new Map<string, TreeFile>();
  let listed = 0;
  const visit = async (oid: string, prefix: string): Promise<void> => {
    for (const { mode, name, oid: child } of readTree(await contentOf(objects, oid, "tree"))) {
      if (++listed > MAX_LISTED || prefix.length + name.length > MAX_PATH_LENGTH) throw tooMany();
      if (mode === FOLDER) await visit(child, `${prefix}${name}/`);
      else if (mode !== SUBMODULE) files.set(prefix + name, { oid: child, mode });
    }
  };
  await visit(tree, "");
  return files;
}

/** Throws `TOO_LARGE` for a tree that `filesOf` would not list. Reads only folders whose sizes are not known. */
export async function checkSize(objects: ObjectReader & Sizes, tree: string): Promise<void> {
  await sizeOf(objects, tree);
}

interface Sizes {
  readonly sizes: GitCaches["sizes"];
}

async function sizeOf(objects: ObjectReader & Sizes, tree: string): Promise<TreeSize> {
  const known = objects.sizes.get(tree);
  if (known !== undefined) return known;
  const size = { entries: 0, longest: 0 };
  for (const { mode, name, oid } of readTree(await contentOf(objects, tree, "tree"))) {
    const below = mode === FOLDER ? await sizeOf(objects, oid) : { entries: 0, longest: -1 };
    size.entries += 1 + below.entries;
    size.longest = Math.max(size.longest, name.length + 1 + below.longest);
    // A hostile tree may have more entries than a walk could visit.
    if (size.entries > MAX_LISTED || size.longest > MAX_PATH_LENGTH) throw tooMany();
  }
  objects.sizes.set(tree, size, SIZE_BYTES);
  return size;
}

/** Returns the file at a path below a tree; `null` without it. */
export async function fileAt(objects: ObjectReader, tree: string, path: string): Promise<TreeFile | null> {
  let oid = tree;
  const names = path.split("/");
  for (const [index, name] of names.entries()) {
    const entries = readTree(await contentOf(objects, oid, "tree"));
    const entry = entries.find((each) => each.name === name);
    const isLast = index === names.length - 1;
    if (entry === undefined || entry.mode === SUBMODULE || (entry.mode === FOLDER) === isLast) return null;
    oid = entry.oid;
    if (isLast) return { oid, mode: entry.mode };
  }
  return null;
}

/** A file to put into a tree, or `null` to delete it. `mode` as in `Change`. */
export type Entry = { oid: string; mode?: string } | null;

/**
 * Returns the tree with the changed files; the empty tree if no file is left. `tree` is `null` for an empty one. Throws `INVALID_INPUT`
 * if a path were a file and a folder, and `TOO_LARGE` for a tree with too many entries (GITTREE-1).
 */
export async function treeWith(
  objects: NewObjects,
  tree: string | null,
  changes: ReadonlyMap<string, Entry>,
): Promise<string> {
  const changed =
    (await changedTree(objects, tree, [...changes], "")) ??
    (await objects.add({ type: "tree", content: new Uint8Array(0) }));
  await checkSize(objects, changed);
  return changed;
}

async function changedTree(
  objects: NewObjects,
  tree: string | null,
  changes: [path: string, entry: Entry][],
  folder: string,
): Promise<string | null> {
  const old = tree === null ? [] : readTree(await contentOf(objects, tree, "tree"));
  const entries = new Map<string, TreeEntry>(old.map((entry) => [entry.name, entry]));
  const below = new Map<string, [path: string, entry: Entry][]>();
  const direct: [name: string, entry: Entry][] = [];
  for (const [path, entry] of changes) {
    const slash = path.indexOf("/");
    if (slash < 0) {
      direct.push([path, entry]);
      continue;
    }
    const name = path.slice(0, slash);
    const inside = below.get(name) ?? [];
    if (inside.push([path.slice(slash + 1), entry]) === 1) below.set(name, inside);
  }
  for (const [name, entry] of direct)
    if (entry === null && entries.get(name)?.mode !== FOLDER) entries.delete(name);
  for (const [name, inside] of below) {
    const entry = entries.get(name);
    const isFolder = entry?.mode === FOLDER;
    if (entry !== undefined && !isFolder) {
      if (inside.every(([, change]) => change === null)) continue;
      throw clash(folder + name);
    }
    const oid = await changedTree(objects, isFolder ? entry.oid : null, inside, `${folder}${name}/`);
    if (oid === null) entries.delete(name);
    else entries.set(name, { mode: FOLDER, name, oid });
  }
  for (const [name, entry] of direct) {
    if (entry === null) continue;
    const before = entries.get(name)?.mode;
    if (before === FOLDER) throw clash(folder + name);
    entries.set(name, { name, mode: before === "100755" ? before : "100644", ...entry });
  }
  if (entries.size === 0) return null;
  return objects.add({ type: "tree", content: encodeTree([...entries.values()]) });
}

function tooMany(): DramatisError {
  const message = `A commit has at most ${MAX_LISTED} files and folders, with paths of ${MAX_PATH_LENGTH} characters. Use fewer.`;
  return tooLarge(message);
}

function clash(path: string): DramatisError {
  return invalid(`"${path}" is a file and a folder. Delete the file, or choose another path.`);
}
