/** The artifacts of a project: a list, a search, and the text of one. Authors delete artifacts. */
import { type FormEvent, useCallback } from "react";
import type { ArtifactSummary } from "../../../../src/client/index.ts";
import { defined } from "../../../../src/shared/defined.ts";
import { client } from "../../client.ts";
import { messageOf, momentOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { type PageOptions, usePages } from "../../hooks/use-pages.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { type ArtifactsChoice, artifactsChoice, artifactsPath, PROJECTS_PATH } from "../../route.ts";
import { navigate } from "../../router.ts";
import { CopyButton } from "../copy-button.tsx";
import { DeleteAction } from "../delete-action.tsx";
import { ErrorNote } from "../error-note.tsx";
import { FIELD } from "../field.tsx";
import { Link } from "../link.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { PageBody } from "../page-body.tsx";
import { HeaderLink, PageHeader } from "../page-header.tsx";
import { ProjectTabs } from "./project-tabs.tsx";

interface ArtifactsPageProps {
  project: string;
  search: string;
  onMenu: (() => void) | undefined;
}

export function ArtifactsPage({ project, search, onMenu }: ArtifactsPageProps) {
  const choice = artifactsChoice(search);
  const { q, type, path } = choice;
  usePageTitle(path === undefined ? `Artifacts of ${project}` : `${path} · Artifacts of ${project}`);
  const loadProject = useCallback(
    (signal: AbortSignal) => client.projects.get(project, { signal }),
    [project],
  );
  // The page also works without the name, so errors are ignored.
  const { value: { name = project } = {} } = useResource(loadProject);
  return (
    <>
      <PageHeader title={name} subtitle="Project" onMenu={onMenu}>
        <HeaderLink to={PROJECTS_PATH}>All projects</HeaderLink>
      </PageHeader>
      <PageBody>
        <ProjectTabs project={project} view="artifacts" />
        {path === undefined ? (
          <ArtifactList key={`${q} ${type}`} project={project} choice={choice} />
        ) : (
          <Artifact key={path} project={project} path={path} back={artifactsPath(project, { q, type })} />
        )}
      </PageBody>
    </>
  );
}

interface ArtifactListProps {
  project: string;
  choice: ArtifactsChoice;
}

function ArtifactList({ project, choice }: ArtifactListProps) {
  const { q, type } = choice;
  const load = useCallback(
    async ({ order: _, ...page }: PageOptions) => {
      const filter = defined({ type });
      if (q !== undefined) {
        const { artifacts } = await client.artifacts.search(project, q, { ...filter, signal: page.signal });
        return { items: artifacts };
      }
      const { artifacts: items, ...rest } = await client.artifacts.list(project, { ...page, ...filter });
      return { items, ...rest };
    },
    [project, q, type],
  );
  const { value: list, error, more, loadMore, reload } = usePages<ArtifactSummary>(load);
  const types = [...new Set([type ?? "", ...(list ?? []).map((artifact) => artifact.type ?? "")])]
    .filter((each) => each !== "")
    .sort();

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("q")).trim();
    navigate(artifactsPath(project, { q: text, type }));
  }

  return (
    <>
      <search>
        <form aria-label="Artifacts" onSubmit={submit} className="flex flex-wrap gap-2">
          <input
            type="search"
            name="q"
            aria-label="Search artifacts"
            placeholder="Ask a question"
            defaultValue={q}
            maxLength={2_000}
            className={`${FIELD} flex-1`}
          />
          {types.length > 0 && (
            <select
              aria-label="Type"
              value={type ?? ""}
              onChange={({ target }) => navigate(artifactsPath(project, { q, type: target.value }))}
              className="rounded-lg border border-line bg-canvas px-3 py-2 text-base text-ink sm:text-sm"
            >
              <option value="">All types</option>
              {types.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          )}
          <button
            type="submit"
            className="shrink-0 rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent"
          >
            Search
          </button>
        </form>
      </search>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {list === undefined && error === undefined && <Loading label="Loading artifacts" />}
      {list?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">
          {q === undefined && type === undefined
            ? "No artifacts yet. Agents with the tools for artifacts write them."
            : "No artifact matches."}
        </p>
      )}
      {list !== undefined && list.length > 0 && (
        <ul aria-label="Artifacts" className="space-y-2">
          {list.map((artifact) => (
            <ArtifactItem
              key={artifact.path}
              artifact={artifact}
              to={artifactsPath(project, { ...choice, path: artifact.path })}
            />
          ))}
        </ul>
      )}
      {more && <LoadMore onClick={loadMore} />}
    </>
  );
}

function ArtifactItem({ artifact, to }: { artifact: ArtifactSummary; to: string }) {
  const { path, title, type, updatedAt } = artifact;
  return (
    <li>
      <Link
        to={to}
        data-testid="artifact-item"
        data-path={path}
        className="block rounded-xl border border-line bg-surface px-4 py-3 hover:border-accent"
      >
        <span className="block truncate text-sm font-medium">{title === "" ? path : title}</span>
        <span className="mt-1 flex flex-wrap gap-x-3 text-xs text-muted">
          <span className="font-mono wrap-anywhere">{path}</span>
          {type !== undefined && <span>{type}</span>}
          <time dateTime={updatedAt}>changed {momentOf(updatedAt, new Date())}</time>
        </span>
      </Link>
    </li>
  );
}

interface ArtifactProps {
  project: string;
  path: string;
  /** The address of the list. */
  back: string;
}

function Artifact({ project, path, back }: ArtifactProps) {
  const isAuthor = useHasRole("author");
  const load = useCallback(
    (signal: AbortSignal) => client.artifacts.get(project, path, { signal }),
    [project, path],
  );
  const { value, error, reload } = useResource(load);
  return (
    <>
      <Link to={back} className="inline-block py-1 text-sm text-accent hover:underline">
        All artifacts
      </Link>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {value === undefined && error === undefined && <Loading label={`Loading ${path}`} />}
      {value !== undefined && (
        <section
          aria-label={path}
          data-testid="artifact"
          className="overflow-hidden rounded-lg border border-line bg-surface"
        >
          <header className="flex items-center gap-2 border-b border-line bg-sunken py-1 pr-1 pl-3 text-xs">
            <h2 className="min-w-0 flex-1 font-mono font-medium wrap-anywhere">{path}</h2>
            {value.type !== undefined && <span className="shrink-0 text-muted">{value.type}</span>}
            <CopyButton text={value.content} about="this artifact" />
          </header>
          <pre className="px-3 py-2 font-mono text-xs leading-5 whitespace-pre-wrap wrap-anywhere">
            {value.content}
          </pre>
        </section>
      )}
      {value !== undefined && isAuthor && (
        <DeleteAction
          kind="artifact"
          asking="Delete this artifact?"
          note="Earlier versions stay in the repository."
          onDelete={async () => {
            await client.artifacts.delete(project, path, { ifVersion: value.version });
            navigate(back);
          }}
        />
      )}
    </>
  );
}
