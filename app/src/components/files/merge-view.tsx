/**
 * Merges the branch of a conversation: a preview, the strategy, a confirmation with the name of the target, and the outcome.
 *
 * MERGEVIEW-1  A merge needs a second click, on a button that names the target branch.
 * MERGEVIEW-2  Conflicts are listed with their paths, and the target stays as it was.
 */
import { useEffect, useId, useRef, useState } from "react";
import type {
  BranchMergeStrategy,
  ConversationView,
  WorkspaceMerge,
  WorkspaceOwner,
} from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { ownCommits, shortOid } from "../../files/commits.ts";
import { count, messageOf, problemText } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { type FilesChoice, filesPath } from "../../route.ts";
import { ConfirmedButton } from "../confirmed-button.tsx";
import { ErrorNote } from "../error-note.tsx";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { Difference } from "./changes-view.tsx";
import { CommitList, useCommits } from "./commits-view.tsx";
import type { RepositoryProps } from "./files-page.tsx";

/** Commits that the preview counts. */
const MOST_COMMITS = 200;

const STRATEGIES: Record<BranchMergeStrategy, { name: string; about: (into: string) => string }> = {
  fail: {
    name: "Merge",
    about: (into) => `Joins the changes of the branch and of ${into}. Conflicts stop the merge.`,
  },
  rebase: {
    name: "Rebase",
    about: (into) =>
      `Puts the commits of the branch after the newest commit of ${into}, so the history stays one line. Conflicts stop it.`,
  },
  force: {
    name: "Merge, and the branch wins",
    about: (into) => `If both changed a file in different ways, the change of ${into} is lost.`,
  },
};

// SAFETY: `keys` returns the keys of the record in their order.
const NAMES = Object.keys(STRATEGIES) as BranchMergeStrategy[];

interface MergeViewProps extends RepositoryProps {
  conversation: ConversationView;
  choice: FilesChoice;
}

export function MergeView(props: MergeViewProps) {
  const { owner, conversation, branch, repository, choice, version, onChanged } = props;
  const { id: repo, base, head, defaultBranch: into, changes } = repository;
  const isAuthor = useHasRole("author");
  const { commits, error, reload } = useCommits(owner, repo, MOST_COMMITS, version);
  const [strategy, setStrategy] = useState<BranchMergeStrategy>("fail");
  const [problem, setProblem] = useState<unknown>(undefined);
  const [outcome, setOutcome] = useState<WorkspaceMerge | undefined>(undefined);
  const [attempt, setAttempt] = useState(0);
  const result = useRef<HTMLDivElement>(null);
  // The button leaves the page, so the outcome gets the focus.
  useEffect(() => {
    if (outcome !== undefined) result.current?.focus();
  }, [outcome]);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (commits === undefined) return <Loading label="Loading the commits" />;
  const own = head === null ? [] : ownCommits(commits, base);
  const merge = async () => {
    setOutcome(undefined);
    setOutcome(await client.workspaces.merge(conversation.id, { repo, strategy }));
    setAttempt((before) => before + 1);
    onChanged();
  };
  const isReady = own.length > 0 && changes.length === 0;
  return (
    <div className="space-y-4">
      <section
        aria-label={`Merge into ${into}`}
        className="flex flex-col items-start gap-3 rounded-xl border border-line bg-surface p-4 text-sm"
      >
        <h2 className="font-medium wrap-anywhere">
          Merge <span className="font-mono text-[0.8125rem]">{branch}</span> into{" "}
          <span className="font-mono text-[0.8125rem]">{into}</span>
        </h2>
        {changes.length > 0 && (
          <p className="text-caution">
            {count(changes.length, "file is", "files are")} not committed.{" "}
            <Link
              to={filesPath(owner, "changes", { repo: choice.repo, against: "head" })}
              className="text-accent underline"
            >
              Commit before the merge
            </Link>
          </p>
        )}
        {changes.length === 0 && own.length === 0 && outcome === undefined && (
          <p className="text-muted">The branch has no commit of its own, so there is nothing to merge.</p>
        )}
        {isReady && !isAuthor && <p className="text-muted">Authors and administrators merge.</p>}
        {isReady && isAuthor && (
          <>
            <Strategies into={into} value={strategy} onChange={setStrategy} />
            <ConfirmedButton
              key={`${strategy} ${attempt}`}
              texts={{
                idle: `Merge into ${into}…`,
                asking:
                  strategy === "force"
                    ? `Confirm: replace the conflicting changes of ${into}`
                    : `Confirm: merge ${count(own.length, "commit", "commits")} into ${into}`,
                working: `Merging into ${into}…`,
              }}
              needsSecond
              className={`wrap-anywhere ${strategy === "force" ? "text-danger" : "border-transparent bg-accent text-on-accent disabled:bg-line"}`}
              testId="merge"
              onConfirm={merge}
              onError={setProblem}
            />
          </>
        )}
        {problem !== undefined && <ErrorNote text={problemText(problem)} />}
        <div ref={result} tabIndex={-1} role="status" className="w-full rounded-lg empty:hidden">
          {outcome !== undefined && <Outcome owner={owner} outcome={outcome} />}
        </div>
      </section>
      {own.length > 0 && (
        <>
          <CommitList title="Commits to merge" commits={own} empty="" />
          <section aria-label="Preview" className="space-y-2">
            <h2 className="px-1 text-xs font-medium text-muted">Changes since {into}</h2>
            <Difference
              owner={owner}
              repo={repo}
              against="base"
              version={version}
              empty="Together, the commits make no change."
            />
          </section>
        </>
      )}
    </div>
  );
}

interface StrategiesProps {
  into: string;
  value: BranchMergeStrategy;
  onChange: (strategy: BranchMergeStrategy) => void;
}

function Strategies({ into, value, onChange }: StrategiesProps) {
  const group = useId();
  return (
    <fieldset className="space-y-1.5">
      <legend className="text-xs text-muted">Strategy</legend>
      {NAMES.map((name) => (
        <label key={name} className="flex items-start gap-2 rounded-lg py-0.5 pointer-coarse:py-2">
          <input
            type="radio"
            name={group}
            value={name}
            checked={name === value}
            onChange={() => onChange(name)}
            className="mt-1 accent-accent"
          />
          <span>
            {STRATEGIES[name].name}
            <span className="block text-xs text-muted">{STRATEGIES[name].about(into)}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Outcome({ owner, outcome }: { owner: WorkspaceOwner; outcome: WorkspaceMerge }) {
  const { repo, into, commit, conflicts = [] } = outcome;
  if (conflicts.length === 0)
    return (
      <p data-testid="merged" className="flex items-center gap-2 rounded-lg bg-tint p-3 text-accent">
        <Icon name="check" />
        <span>
          Merged into <span className="font-mono">{into}</span>
          {commit !== undefined && (
            <>
              {" "}
              as <span className="font-mono">{shortOid(commit)}</span>
            </>
          )}
        </span>
      </p>
    );
  return (
    <div data-testid="conflicts" className="space-y-2 rounded-lg bg-danger-tint p-3">
      <p className="text-danger">
        Not merged. Both branches changed {count(conflicts.length, "file", "files")} in different ways.{" "}
        <span className="font-mono">{into}</span> stays as it was.
      </p>
      <ul className="space-y-0.5">
        {conflicts.map(({ path }) => (
          <li key={path} data-testid="conflict">
            <Link
              to={filesPath(owner, "files", { repo, path })}
              className="font-mono text-xs wrap-anywhere underline pointer-coarse:block pointer-coarse:py-2"
            >
              {path}
            </Link>
          </li>
        ))}
      </ul>
      <p className="text-xs text-muted">Merge with Git on your machine, or let the branch win.</p>
    </div>
  );
}
