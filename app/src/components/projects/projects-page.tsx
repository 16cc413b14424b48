/** The projects of the tenant, and the form that creates a project. */
import type { ProjectSummary } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf, momentOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { type PageOptions, usePages } from "../../hooks/use-pages.ts";
import { projectPath } from "../../route.ts";
import { navigate } from "../../router.ts";
import { ErrorNote } from "../error-note.tsx";
import { Link } from "../link.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { PageBody } from "../page-body.tsx";
import { PageHeader } from "../page-header.tsx";
import {
  ProjectForm,
  RepositoryFields,
  repositoriesOf,
  repositoryPointers,
  TextField,
} from "./project-form.tsx";

async function load({ order: _, ...page }: PageOptions) {
  const { projects: items, ...rest } = await client.projects.list(page);
  return { items, ...rest };
}

export function ProjectsPage({ onMenu }: { onMenu: (() => void) | undefined }) {
  usePageTitle("Projects");
  const isAuthor = useHasRole("author");
  const { value: list, error, more, loadMore, reload } = usePages<ProjectSummary>(load);
  const isWithoutDefault = list !== undefined && !more && !list.some(({ id }) => id === "default");
  return (
    <>
      <PageHeader title="Projects" subtitle="Repositories that agents and people work on" onMenu={onMenu} />
      <PageBody>
        {isAuthor && <CreateProject />}
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
        {list === undefined && error === undefined && <Loading label="Loading projects" />}
        {list?.length === 0 && !isAuthor && (
          <p className="px-1 py-2 text-sm text-muted">Authors and administrators create projects.</p>
        )}
        {list !== undefined && list.length > 0 && (
          <ul aria-label="Projects" className="space-y-2">
            {list.map((project) => (
              <ProjectItem key={project.id} project={project} />
            ))}
          </ul>
        )}
        {isWithoutDefault && (
          <Link
            to={projectPath("default")}
            data-testid="default-project"
            className="block rounded-xl border border-line bg-surface px-4 py-3 hover:border-accent"
          >
            <span className="block text-sm font-medium">default</span>
            <span className="mt-1 block text-xs text-muted">
              Agents work here if they name no project. It is not created yet: it has no repositories, secrets
              or settings.
            </span>
          </Link>
        )}
        {more && <LoadMore onClick={loadMore} />}
      </PageBody>
    </>
  );
}

function ProjectItem({ project: { id, name, createdAt } }: { project: ProjectSummary }) {
  return (
    <li>
      <Link
        to={projectPath(id)}
        data-testid="project-item"
        data-project={id}
        className="block rounded-xl border border-line bg-surface px-4 py-3 hover:border-accent"
      >
        <span className="block truncate text-sm font-medium">{name ?? id}</span>
        <span className="mt-1 flex flex-wrap gap-x-3 text-xs text-muted">
          {name !== undefined && <span className="font-mono wrap-anywhere">{id}</span>}
          <time dateTime={createdAt}>created {momentOf(createdAt, new Date())}</time>
        </span>
      </Link>
    </li>
  );
}

function CreateProject() {
  return (
    <ProjectForm
      title="New project"
      isMain
      button="Create project"
      testId="create-project"
      pointers={["/id", "/name", ...repositoryPointers("/repositories/0")]}
      onSubmit={async (form) => {
        const name = String(form.get("name")).trim();
        const { id } = await client.projects.create({
          id: String(form.get("id")).trim(),
          ...(name === "" ? {} : { name }),
          repositories: repositoriesOf(form),
        });
        navigate(projectPath(id));
      }}
    >
      {(problemAt) => (
        <>
          <TextField
            name="id"
            label="Id of the project"
            description="Agents name it in projectIds."
            error={problemAt("/id")}
            isId
            required
          />
          <TextField name="name" label="Name (optional)" error={problemAt("/name")} />
          <RepositoryFields at="/repositories/0" problemAt={problemAt} required={false} />
        </>
      )}
    </ProjectForm>
  );
}
