/** The commits of the branch of a conversation, and below them the commits before it. */
import { useCallback, useState } from "react";
import type { WorkspaceOwner } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { type Commit, messageParts, ownCommits, shortOid } from "../../files/commits.ts";
import { messageOf, momentOf } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { CopyButton } from "../copy-button.tsx";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import type { RepositoryProps } from "./files-page.tsx";

/** Commits that are loaded at first, and at most. */
const [FIRST, MOST] = [50, 200];

export function CommitsView({ owner, repository, version }: RepositoryProps) {
  const { id: repo, base, defaultBranch } = repository;
  const [limit, setLimit] = useState(FIRST);
  const { commits, error, reload } = useCommits(owner, repo, limit, version);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (commits === undefined) return <Loading label="Loading the commits" />;
  const own = ownCommits(commits, base);
  const earlier = commits.slice(own.length);
  return (
    <div className="space-y-4">
      <CommitList
        title={`Commits of this ${"run" in owner ? "run" : "conversation"}`}
        commits={own}
        empty="The branch has no commit of its own yet."
      />
      {earlier.length > 0 && <CommitList title={`Before, on ${defaultBranch}`} commits={earlier} empty="" />}
      {commits.length >= limit && limit < MOST && (
        <LoadMore onClick={() => setLimit(MOST)} text="Load older commits" />
      )}
    </div>
  );
}

/** Loads the newest commits of the branch. */
export function useCommits(owner: WorkspaceOwner, repo: string, limit: number, version: string) {
  const load = useCallback(
    (signal: AbortSignal) => client.workspaces.commits(owner, { repo, limit, signal }),
    [owner, repo, limit],
  );
  const { value, ...rest } = useResource(load, version);
  return { commits: value?.commits, ...rest };
}

interface CommitListProps {
  title: string;
  commits: readonly Commit[];
  empty: string;
}

export function CommitList({ title, commits, empty }: CommitListProps) {
  return (
    <section aria-label={title} data-testid="commits" className="space-y-2">
      <h2 className="px-1 text-xs font-medium text-muted">{title}</h2>
      {commits.length === 0 && <p className="px-1 text-sm text-muted">{empty}</p>}
      {commits.length > 0 && (
        <ol className="divide-y divide-line rounded-xl border border-line bg-surface">
          {commits.map((commit) => (
            <CommitItem key={commit.oid} commit={commit} />
          ))}
        </ol>
      )}
    </section>
  );
}

function CommitItem({ commit: { oid, message, author, time, parents } }: { commit: Commit }) {
  const { title, body } = messageParts(message);
  return (
    <li data-testid="commit" className="flex items-start gap-3 px-4 py-2.5">
      <div className="min-w-0 flex-1 space-y-0.5">
        <p className="text-sm font-medium wrap-anywhere">{title}</p>
        {body !== "" && <p className="text-xs whitespace-pre-line text-muted wrap-anywhere">{body}</p>}
        <p className="text-xs text-muted">
          {author} <time dateTime={time}>{momentOf(time, new Date())}</time>
          {parents.length > 1 && " · merge"}
        </p>
      </div>
      <span className="-my-1 flex shrink-0 items-center text-xs text-muted">
        <span className="font-mono">{shortOid(oid)}</span>
        <CopyButton text={oid} about={`the id of the commit ${shortOid(oid)}`} />
      </span>
    </li>
  );
}
