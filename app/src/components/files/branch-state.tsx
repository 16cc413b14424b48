/** The branch of a conversation in a repository: its name, its origin, and its uncommitted changes. */
import { useCallback, useId } from "react";
import { client } from "../../client.ts";
import { type Repository, shortOid } from "../../files/commits.ts";
import { count } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { projectPath } from "../../route.ts";
import { CopyButton } from "../copy-button.tsx";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";

interface BranchStateProps {
  branch: string;
  repository: Repository;
  repositories: readonly Repository[];
  project: string;
  onChoose: (repo: string) => void;
}

export function BranchState({ branch, repository, repositories, project, onChoose }: BranchStateProps) {
  const { id, defaultBranch, base, head, changes } = repository;
  const select = useId();
  const isMerged = useIsMerged(project, repository, branch);
  return (
    <section
      aria-label="Branch"
      data-testid="branch"
      className="space-y-1.5 rounded-xl border border-line bg-surface px-4 py-3 text-xs text-muted"
    >
      <div className="flex items-center gap-2">
        <Icon name="branch" />
        <h2 className="min-w-0 font-mono text-[0.8125rem] font-medium text-ink wrap-anywhere">{branch}</h2>
        <span className="-my-1.5">
          <CopyButton text={branch} about="the name of the branch" />
        </span>
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5">
        <span className="flex min-w-0 flex-wrap items-center gap-1.5">
          {repositories.length > 1 ? (
            <>
              <label htmlFor={select}>Repository</label>
              <select
                id={select}
                value={id}
                onChange={({ target }) => onChoose(target.value)}
                className="max-w-full rounded-lg border border-line bg-surface px-2 py-1 text-base text-ink sm:text-xs"
              >
                {repositories.map(({ id: repo }) => (
                  <option key={repo} value={repo}>
                    {repo}
                  </option>
                ))}
              </select>
            </>
          ) : (
            <span>
              Repository <span className="font-mono text-ink wrap-anywhere">{id}</span>
            </span>
          )}
          of{" "}
          <Link to={projectPath(project)} className="text-accent hover:underline pointer-coarse:py-2">
            {project}
          </Link>
        </span>
        <span>
          from <span className="font-mono text-ink">{defaultBranch}</span>
          {base !== null && <span className="font-mono"> {shortOid(base)}</span>}
        </span>
        {head !== null && head !== base && (
          <span>
            now <span className="font-mono text-ink">{shortOid(head)}</span>
          </span>
        )}
        <span className={changes.length > 0 ? "text-caution" : undefined}>
          {changes.length > 0
            ? `${count(changes.length, "file", "files")} not committed`
            : head !== base
              ? "All committed"
              : !isMerged && "No changes yet"}
        </span>
        {isMerged && head !== null && (
          <span data-testid="merged-state" className="flex items-center gap-1.5 text-accent">
            <Icon name="check" />
            <span>
              Merged into <span className="font-mono">{defaultBranch}</span> as{" "}
              <span className="font-mono">{shortOid(head)}</span>
            </span>
          </span>
        )}
      </div>
    </section>
  );
}

/**
 * Reports whether the default branch has all commits of a branch. Only readers of the list of branches see it: a branch
 * appears in the list with its first commit.
 */
function useIsMerged(project: string, { id, base, head }: Repository, branch: string): boolean {
  const [isAuthor, isOperator] = [useHasRole("author"), useHasRole("operator")];
  const mayBe = (isAuthor || isOperator) && head !== null && head === base;
  const load = useCallback(
    async (signal: AbortSignal) =>
      mayBe && (await client.projects.branches(project, id, { signal })).branches,
    [mayBe, project, id],
  );
  const { value } = useResource(load);
  return mayBe && value !== undefined && value !== false && value.some(({ name }) => name === branch);
}
