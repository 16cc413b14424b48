/** A repository of a project: its branches, and its bundle for Git. */
import { useCallback, useState } from "react";
import type { Branches, ProjectRepository } from "../../../../src/client/index.ts";
import { pathOf } from "../../../../src/client/requests.ts";
import { client } from "../../client.ts";
import { ownerOfBranch, shortOid } from "../../files/commits.ts";
import { cloneCommand, count, messageOf, problemText } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { conversationPath, filesPath, runPath } from "../../route.ts";
import { hasToken } from "../../session.ts";
import { CopyButton } from "../copy-button.tsx";
import { DeleteAction } from "../delete-action.tsx";
import { DownloadLink } from "../download-link.tsx";
import { ErrorNote } from "../error-note.tsx";
import { FIELD, Field } from "../field.tsx";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { NewForm } from "../new-form.tsx";
import { RemoteForm } from "./remote-form.tsx";

interface RepositoryCardProps {
  project: string;
  repository: ProjectRepository;
  onDeleted: () => void;
}

export function RepositoryCard({ project, repository, onDeleted }: RepositoryCardProps) {
  const { id, kind, defaultBranch } = repository;
  const isAuthor = useHasRole("author");
  const isOperator = useHasRole("operator");
  const [version, setVersion] = useState(0);
  const moved = () => setVersion((before) => before + 1);
  return (
    <section
      aria-labelledby={`repository-${id}`}
      data-testid="repository"
      data-repo={id}
      className="space-y-3 rounded-xl border border-line bg-surface p-4 text-sm"
    >
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 id={`repository-${id}`} className="min-w-0 font-mono font-medium wrap-anywhere">
          {id}
        </h2>
        {kind === "artifacts" && <span className="text-xs text-muted">texts and data of agents</span>}
        <span className="flex items-center gap-1 text-xs text-muted">
          <Icon name="branch" className="size-3.5" />
          <span className="sr-only">Default branch</span>
          <span className="font-mono">{defaultBranch}</span>
        </span>
      </header>
      {isAuthor || isOperator ? (
        <>
          <BranchList project={project} repo={id} defaultBranch={defaultBranch} version={version} />
          {isAuthor && (
            <div className="flex flex-wrap gap-2">
              <ImportBundle project={project} repo={id} onImported={moved} />
              <NewForm text="Fetch or push" icon="branch" testId="remote">
                <RemoteForm project={project} repo={id} defaultBranch={defaultBranch} onFetched={moved} />
              </NewForm>
            </div>
          )}
          {isAuthor && kind === "code" && (
            <DeleteAction
              kind="repository"
              asking={`Delete ${id} for good?`}
              note="Deletes its branches. Conversations and runs lose their files in it."
              onDelete={async () => {
                await client.projects.deleteRepository(project, id);
                onDeleted();
              }}
            />
          )}
        </>
      ) : (
        <p className="text-xs text-muted">Authors, operators and administrators see its branches.</p>
      )}
    </section>
  );
}

/** Branches that are shown at first. */
const FIRST = 10;

interface BranchesProps {
  project: string;
  repo: string;
  defaultBranch: string;
  version: number;
}

function BranchList({ project, repo, defaultBranch, version }: BranchesProps) {
  const load = useCallback(
    (signal: AbortSignal) => client.projects.branches(project, repo, { signal }),
    [project, repo],
  );
  const { value: loaded, error, reload } = useResource(load, version);
  const value = loaded?.branches;
  // Without the titles, the names of the branches suffice.
  const { value: listed } = useResource(loadTitles);
  const [all, setAll] = useState(false);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (value === undefined) return <Loading label={`Loading the branches of ${repo}`} />;
  if (value.length === 0)
    return (
      <p className="text-xs text-muted">
        The repository is empty. Import a bundle, or let an agent write the first file.
      </p>
    );
  const sorted = value.toSorted((one, other) =>
    one.name === defaultBranch ? -1 : other.name === defaultBranch ? 1 : one.name < other.name ? -1 : 1,
  );
  const clone = cloneCommand(window.location.origin, { project, repo, needsToken: hasToken() });
  return (
    <div className="space-y-1">
      <h3 className="text-xs text-muted">{count(value.length, "branch", "branches")}</h3>
      <ul
        aria-label={`Branches of ${repo}`}
        className="divide-y divide-line rounded-lg border border-line text-xs"
      >
        {(all ? sorted : sorted.slice(0, FIRST)).map((branch) => (
          <BranchItem key={branch.name} branch={branch} titles={listed} />
        ))}
      </ul>
      {!all && sorted.length > FIRST && (
        <button
          type="button"
          onClick={() => setAll(true)}
          className="py-1 text-xs text-accent hover:underline pointer-coarse:py-2.5"
        >
          Show all {sorted.length} branches
        </button>
      )}
      <p className="flex items-center gap-1 text-xs text-muted">
        <code className="min-w-0 font-mono wrap-anywhere">{clone}</code>
        <CopyButton text={clone} about="the command" />
      </p>
      <DownloadLink
        address={`/api/${pathOf("projects", project, "repos", repo, "bundle")}`}
        name={`${project}-${repo}.bundle`}
        data-testid="download-bundle"
        className="mt-2 inline-flex items-center gap-2 rounded-lg border border-line px-3 py-1.5 font-medium hover:border-accent"
      >
        <Icon name="down" />
        Download a bundle
      </DownloadLink>
    </div>
  );
}

/** Returns the titles of the latest conversations that the reader may read, by id. */
async function loadTitles(signal: AbortSignal): Promise<ReadonlyMap<string, string | null>> {
  const { conversations } = await client.conversations.list({ limit: 100, sort: "activity", signal });
  return new Map(conversations.map(({ id, title }) => [id, title ?? null]));
}

interface BranchItemProps {
  branch: Branches["branches"][number];
  titles: ReadonlyMap<string, string | null> | undefined;
}

function BranchItem({ branch: { name, oid }, titles }: BranchItemProps) {
  const owner = ownerOfBranch(name);
  return (
    <li data-testid="branch-item" className="flex items-center justify-between gap-3 px-3 py-2">
      {owner === undefined ? (
        <span className="min-w-0 font-mono wrap-anywhere">{name}</span>
      ) : (
        <span className="min-w-0 space-y-0.5">
          <Link
            to={"run" in owner ? runPath(owner.run) : conversationPath(owner.conversation)}
            className="block text-sm wrap-anywhere text-accent hover:underline pointer-coarse:py-1.5"
          >
            {"run" in owner ? "Run" : (titles?.get(owner.conversation) ?? "Conversation")}
          </Link>
          <span className="flex flex-wrap gap-x-2 text-muted">
            <span className="font-mono wrap-anywhere">{name}</span>
            <Link to={filesPath(owner)} className="text-accent hover:underline pointer-coarse:py-1.5">
              Files<span className="sr-only"> of {name}</span>
            </Link>
          </span>
        </span>
      )}
      <span className="shrink-0 font-mono text-muted">{shortOid(oid)}</span>
    </li>
  );
}

interface ImportBundleProps {
  project: string;
  repo: string;
  onImported: () => void;
}

function ImportBundle({ project, repo, onImported }: ImportBundleProps) {
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const [done, setDone] = useState("");

  async function take(file: File | undefined) {
    if (file === undefined) return;
    setWorking(true);
    setError(undefined);
    setDone("");
    try {
      const { branches } = await client.projects.importBundle(project, repo, file);
      setDone(`Imported. The repository has ${count(branches.length, "branch", "branches")}.`);
      onImported();
    } catch (reason) {
      setError(reason);
    }
    setWorking(false);
  }

  return (
    <NewForm text="Import a bundle" testId="import-bundle">
      <div className="space-y-2">
        <Field
          label={`Bundle for ${repo}`}
          description="Make it with “git bundle create all.bundle --all”. The import adds branches and tags. A branch moves only forward."
        >
          {(control) => (
            <input
              {...control}
              type="file"
              accept=".bundle"
              disabled={working}
              onChange={({ target }) => {
                const [file] = target.files ?? [];
                void take(file);
                // The same file can be chosen again after an error.
                target.value = "";
              }}
              className={FIELD}
            />
          )}
        </Field>
        {error !== undefined && <ErrorNote text={problemText(error)} />}
        <p role="status" className="text-xs text-muted empty:hidden">
          {working ? "Importing…" : done}
        </p>
      </div>
    </NewForm>
  );
}
