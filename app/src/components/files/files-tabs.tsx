/** The links of the views of files. */
import type { WorkspaceOwner } from "../../../../src/client/index.ts";
import { type FilesView, filesPath, filesViews } from "../../route.ts";
import { Link } from "../link.tsx";

const TEXT: Record<FilesView, string> = {
  files: "Files",
  changes: "Changes",
  commits: "Commits",
  merge: "Merge",
};

interface FilesTabsProps {
  owner: WorkspaceOwner;
  view: FilesView;
  repo: string | undefined;
  /** Number of uncommitted files. */
  uncommitted: number;
}

export function FilesTabs({ owner, view, repo, uncommitted }: FilesTabsProps) {
  return (
    <nav aria-label="Views of the files" className="flex flex-wrap gap-x-1 border-b border-line">
      {filesViews(owner).map((name) => (
        <Link
          key={name}
          to={filesPath(owner, name, { repo })}
          aria-current={name === view ? "page" : undefined}
          data-testid={`view-${name}`}
          className="-mb-px rounded-t-lg border-b-2 border-transparent px-2.5 py-2 text-sm text-muted hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
        >
          {TEXT[name]}
          {name === "changes" && uncommitted > 0 && (
            <span className="ml-1.5 rounded-full bg-caution-tint px-1.5 py-0.5 text-xs text-caution tabular-nums">
              {uncommitted}
              <span className="sr-only"> not committed</span>
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}
