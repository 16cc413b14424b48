/**
 * The paths of a repository as a tree of folders. Pure.
 *
 * FILETREE-1  Each path is in the tree once: folders first, then files, each by name.
 * FILETREE-2  A folder that has only a folder shares its entry, such as `src/agents`.
 */

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
