/**
 * The paths of a repository as a tree of folders. Pure.
 *
 * FILETREE-1  Each path is in the tree once: folders first, then files, each by name.
 * FILETREE-2  A folder that has only a folder shares its entry, such as `src/agents`.
 * FILETREE-3  The page opens the first changed file that is not deleted, or the README of the top folder.
 */

import type { ChangeKind } from "./unified-diff.ts";

export interface TreeFolder {
  /** From the folder above, such as `src/agents`. */
  name: string;
  path: string;
  folders: TreeFolder[];
  files: { name: string; path: string }[];
}

export function fileTree(paths: Iterable<string>): TreeFolder {
  const root: TreeFolder = { name: "", path: "", folders: [], files: [] };
  const known = new Map([["", root]]);
  const folderAt = (path: string): TreeFolder => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const cut = path.lastIndexOf("/");
    const folder: TreeFolder = { name: path.slice(cut + 1), path, folders: [], files: [] };
    known.set(path, folder);
    folderAt(path.slice(0, Math.max(0, cut))).folders.push(folder);
    return folder;
  };
  for (const path of [...new Set(paths)].sort()) {
    const cut = path.lastIndexOf("/");
    folderAt(path.slice(0, Math.max(0, cut))).files.push({ name: path.slice(cut + 1), path });
  }
  return { ...root, folders: joinedAll(root.folders) };
}

function joined({ name, path, folders, files }: TreeFolder): TreeFolder {
  const [only] = folders;
  if (only !== undefined && folders.length === 1 && files.length === 0)
    return joined({ ...only, name: `${name}/${only.name}` });
  return { name, path, folders: joinedAll(folders), files };
}

function joinedAll(folders: readonly TreeFolder[]): TreeFolder[] {
  return folders.map(joined).sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns the path of the file to begin with; `undefined` without changed files and without a README. */
export function firstFile(
  paths: readonly string[],
  changes: ReadonlyMap<string, { change: ChangeKind }>,
): string | undefined {
  const [changed] = [...changes].filter(([, { change }]) => change !== "deleted").map(([path]) => path);
  return changed ?? paths.find((path) => /^readme(?:\.[a-z]+)?$/i.test(path));
}
