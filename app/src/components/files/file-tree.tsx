/** A tree of files. Folders open and close; a folder draws its files while it is open. */
import { useState } from "react";
import { fileTree, type TreeFolder } from "../../files/file-tree.ts";
import type { ChangeKind } from "../../files/unified-diff.ts";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";
import { ChangeMark } from "./diff-view.tsx";

/** The changes of files, by path. */
export type FileMarks = ReadonlyMap<string, { change: ChangeKind; isCommitted: boolean }>;

interface TreeProps {
  marks: FileMarks;
  current: string | undefined;
  /** Folders begin open. Otherwise only folders with changes or with the current file do. */
  isOpen: boolean;
  /** Returns the address of a file. */
  to: (path: string) => string;
}

export function FileTree({ paths, ...tree }: TreeProps & { paths: readonly string[] }) {
  return (
    <nav aria-label="Files" data-testid="tree" className="text-sm">
      <Entries folder={fileTree(paths)} {...tree} />
    </nav>
  );
}

function Entries({ folder, ...tree }: TreeProps & { folder: TreeFolder }) {
  return (
    <ul>
      {folder.folders.map((inner) => (
        <li key={inner.path}>
          <Folder folder={inner} {...tree} />
        </li>
      ))}
      {folder.files.map(({ name, path }) => (
        <li key={path}>
          <FileLink name={name} path={path} {...tree} />
        </li>
      ))}
    </ul>
  );
}

function Folder({ folder, ...tree }: TreeProps & { folder: TreeFolder }) {
  const { marks, current, isOpen } = tree;
  const inside = (path: string) => path.startsWith(`${folder.path}/`);
  const isChanged = [...marks.keys()].some(inside);
  const [open, setOpen] = useState(isOpen || isChanged || (current !== undefined && inside(current)));
  return (
    <details
      open={open}
      onToggle={({ currentTarget, target }) => target === currentTarget && setOpen(currentTarget.open)}
    >
      <summary className="flex items-center gap-1.5 rounded-lg px-1.5 py-1 hover:bg-sunken pointer-coarse:py-2.5 [&::-webkit-details-marker]:hidden">
        <Icon
          name="chevron"
          className="size-3.5 text-muted transition-transform [details[open]>summary>&]:rotate-90"
        />
        <Icon name="folder" className="text-muted" />
        <span className="min-w-0 flex-1 truncate">{folder.name}</span>
        {isChanged && !open && (
          <span className="size-1.5 rounded-full bg-caution">
            <span className="sr-only">with changes</span>
          </span>
        )}
      </summary>
      {open && (
        <div className="ml-2.5 border-l border-line pl-1.5">
          <Entries folder={folder} {...tree} />
        </div>
      )}
    </details>
  );
}

function FileLink({ name, path, marks, current, to }: TreeProps & { name: string; path: string }) {
  const mark = marks.get(path);
  return (
    <Link
      to={to(path)}
      aria-current={path === current ? "page" : undefined}
      data-testid="tree-file"
      data-path={path}
      data-change={mark?.change}
      title={path}
      className="flex items-center gap-1.5 rounded-lg py-1 pr-1.5 pl-6.5 hover:bg-sunken aria-[current=page]:bg-tint pointer-coarse:py-2.5"
    >
      <Icon name="file" className="text-muted" />
      <span
        className={`min-w-0 flex-1 truncate ${mark?.change === "deleted" ? "text-muted line-through" : ""}`}
      >
        {name}
      </span>
      {mark !== undefined && (
        <>
          {!mark.isCommitted && (
            <span title="not committed" className="text-xs text-caution">
              <span aria-hidden="true">●</span>
              <span className="sr-only">not committed, </span>
            </span>
          )}
          <ChangeMark change={mark.change} />
        </>
      )}
    </Link>
  );
}
