/** The links of the views of files. */
import type { WorkspaceOwner } from "../../../../src/client/index.ts";
import { type FilesView, filesPath, filesViews } from "../../route.ts";
import { TABS, TabLink } from "../tab-link.tsx";

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
    <nav aria-label="Views of the files" className={TABS}>
      {filesViews(owner).map((name) => (
        <TabLink
          key={name}
          to={filesPath(owner, name, { repo })}
          isCurrent={name === view}
          data-testid={`view-${name}`}
        >
          {TEXT[name]}
          {name === "changes" && uncommitted > 0 && (
            <span className="ml-1.5 rounded-full bg-caution-tint px-1.5 py-0.5 text-xs text-caution tabular-nums">
              {uncommitted}
              <span className="sr-only"> not committed</span>
            </span>
          )}
        </TabLink>
      ))}
    </nav>
  );
}
