/** The files of a repository as a tree, and one file with the numbers of its lines. On small screens one of them at a time. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { WorkspaceFiles } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { firstFile } from "../../files/file-tree.ts";
import { messageOf } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { type FilesChoice, filesPath } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { FIELD } from "../field.tsx";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { type FileMarks, FileTree } from "./file-tree.tsx";
import { FileView } from "./file-view.tsx";
import type { RepositoryProps } from "./files-page.tsx";

export function FileBrowser({
  owner,
  repository,
  version,
  choice,
}: RepositoryProps & { choice: FilesChoice }) {
  const { id: repo, changes } = repository;
  const load = useCallback(
    (signal: AbortSignal) => client.workspaces.files(owner, { repo, signal }),
    [owner, repo],
  );
  const { value, error, reload } = useResource(load, version);
  const files = useRef<HTMLDivElement>(null);
  const back = useRef<HTMLDivElement>(null);
  const { path } = choice;
  const before = useRef(path);
  // On small screens the list or the file leaves the page, with the focus.
  useEffect(() => {
    if (path !== before.current) (path === undefined ? files : back).current?.focus();
    before.current = path;
  }, [path]);
  if (value === undefined)
    return error === undefined ? (
      <Loading label="Loading the list of files" />
    ) : (
      <ErrorNote text={messageOf(error)} onRetry={reload} />
    );
  const marks = marksOf(value.changes, changes);
  const paths = [...new Set([...value.files, ...marks.keys()])];
  if (paths.length === 0)
    return (
      <p className="px-1 py-2 text-sm text-muted">
        The repository is empty. An agent writes its first file, or an author imports a bundle.
      </p>
    );
  // On small screens the list has the page until the reader chooses a file.
  const shown = path ?? firstFile(paths, marks);
  return (
    <div className="gap-4 md:grid md:grid-cols-[16rem_minmax(0,1fr)]">
      <div
        ref={files}
        tabIndex={-1}
        className={`min-w-0 space-y-2 outline-none md:sticky md:top-0 md:max-h-[calc(100dvh-5rem)] md:self-start md:overflow-y-auto ${path === undefined ? "" : "max-md:hidden"}`}
      >
        <Finder
          paths={paths}
          marks={marks}
          current={shown}
          to={(file) => filesPath(owner, "files", { repo: choice.repo, path: file })}
        />
        {value.cut !== undefined && <p className="px-1 text-xs text-caution">The list is cut. {value.cut}</p>}
      </div>
      <div className={`min-w-0 ${path === undefined ? "max-md:hidden" : ""}`}>
        {shown === undefined ? (
          <p className="px-1 py-2 text-sm text-muted">
            Choose a file. A, M and D mark the files that the branch added, modified and deleted. A dot marks
            changes that are not committed.
          </p>
        ) : (
          <>
            {/* On large screens it is hidden, and so it takes no focus from the tree. */}
            <div ref={back} tabIndex={-1} className="mb-2 outline-none md:hidden">
              <Link
                to={filesPath(owner, "files", { repo: choice.repo })}
                className="flex items-center gap-1 py-1 text-sm text-accent hover:underline"
              >
                <Icon name="chevron" className="rotate-180" />
                All files
              </Link>
            </div>
            {marks.get(shown)?.change === "deleted" ? (
              <p className="px-1 py-2 text-sm text-muted wrap-anywhere">
                <span className="font-mono">{shown}</span> is deleted. Its last lines are among the changes.
              </p>
            ) : (
              <FileView key={`${repo} ${shown}`} owner={owner} repo={repo} path={shown} version={version} />
            )}
          </>
        )}
      </div>
    </div>
  );
}

type Change = WorkspaceFiles["changes"][number];

/** Returns the marks of changed files: the change since the branch began, and whether it is committed. */
function marksOf(changed: readonly Change[], uncommitted: readonly Change[]): FileMarks {
  const open = new Set(uncommitted.map(({ path }) => path));
  // A file that the branch has added is added, although a later change of it is not committed.
  const all = [...uncommitted, ...changed];
  return new Map(all.map(({ path, change }) => [path, { change, isCommitted: !open.has(path) }]));
}

/** Files that a search lists. */
const MAX_FOUND = 200;

interface FinderProps {
  paths: readonly string[];
  marks: FileMarks;
  current: string | undefined;
  to: (path: string) => string;
}

/** The tree, or the files with the searched text in their paths. */
function Finder({ paths, marks, current, to }: FinderProps) {
  const [text, setText] = useState("");
  const sought = text.trim().toLowerCase();
  const found = sought === "" ? paths : paths.filter((path) => path.toLowerCase().includes(sought));
  return (
    <>
      <input
        type="search"
        value={text}
        onChange={({ target }) => setText(target.value)}
        aria-label="Find a file"
        placeholder="Find a file"
        className={FIELD}
      />
      {found.length === 0 && <p className="px-1 text-sm text-muted">No path has this text.</p>}
      <FileTree
        key={sought === "" ? "all" : "found"}
        paths={sought === "" ? found : found.slice(0, MAX_FOUND)}
        marks={marks}
        current={current}
        isOpen={sought !== "" || found.length <= MAX_OPEN}
        to={to}
      />
      {sought !== "" && found.length > MAX_FOUND && (
        <p className="px-1 text-xs text-muted">and {found.length - MAX_FOUND} more</p>
      )}
    </>
  );
}

/** All folders of a smaller repository begin open. */
const MAX_OPEN = 40;
