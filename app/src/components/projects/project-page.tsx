/** A project: its repositories, its secrets or its settings. */
import { useCallback } from "react";
import { DramatisClientError, type Project } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf, momentOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { PROJECTS_PATH, type ProjectView } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { Facts } from "../facts.tsx";
import { Loading } from "../loading.tsx";
import { PageBody } from "../page-body.tsx";
import { HeaderLink, PageHeader } from "../page-header.tsx";
import {
  ProjectForm,
  RepositoryFields,
  repositoriesOf,
  repositoryOf,
  repositoryPointers,
} from "./project-form.tsx";
import { ProjectTabs } from "./project-tabs.tsx";
import { RepositoryCard } from "./repository-card.tsx";
import { SecretsView } from "./secrets-view.tsx";
import { SettingsView } from "./settings-view.tsx";

interface ProjectPageProps {
  id: string;
  /** The repositories when absent. */
  view: ProjectView | undefined;
  onMenu: (() => void) | undefined;
}

const TITLES: Record<ProjectView, string> = { secrets: "Secrets of", settings: "Settings of" };

export function ProjectPage({ id, view, onMenu }: ProjectPageProps) {
  usePageTitle(`${view === undefined ? "Project" : TITLES[view]} ${id}`);
  const isAuthor = useHasRole("author");
  const load = useCallback((signal: AbortSignal) => client.projects.get(id, { signal }), [id]);
  const { value: project, error, reload } = useResource(load);
  const isMissing = error instanceof DramatisClientError && error.status === 404;
  return (
    <>
      <PageHeader title={project?.name ?? id} subtitle="Project" onMenu={onMenu}>
        <HeaderLink to={PROJECTS_PATH}>All projects</HeaderLink>
      </PageHeader>
      <PageBody>
        {isMissing && (
          <p data-testid="no-project" className="px-1 py-2 text-sm text-muted">
            There is no project <span className="font-mono text-ink">{id}</span>. Check the address, or open
            another project.{" "}
            {isAuthor ? "You can also create it." : "Authors and administrators create projects."} Agents that
            name it work without repositories and artifacts.
          </p>
        )}
        {isMissing && isAuthor && <CreateThis id={id} onCreated={reload} />}
        {error !== undefined && !isMissing && <ErrorNote text={messageOf(error)} onRetry={reload} />}
        {project === undefined && error === undefined && <Loading label="Loading the project" />}
        {project !== undefined && <ProjectTabs project={id} view={view} />}
        {project !== undefined && view === undefined && <Repositories project={project} onChanged={reload} />}
        {project !== undefined && view === "secrets" && <SecretsView project={id} />}
        {project !== undefined && view === "settings" && (
          <SettingsView project={project} onChanged={reload} />
        )}
      </PageBody>
    </>
  );
}

function Repositories({ project, onChanged }: { project: Project; onChanged: () => void }) {
  const isAuthor = useHasRole("author");
  return (
    <>
      <Facts
        facts={[
          ["Id", project.id],
          ["Created", momentOf(project.createdAt, new Date())],
        ]}
      />
      {isAuthor && <AddRepository project={project.id} onAdded={onChanged} />}
      {project.repositories.map((repository) => (
        <RepositoryCard
          key={repository.id}
          project={project.id}
          repository={repository}
          onDeleted={onChanged}
        />
      ))}
    </>
  );
}

/** Creates the project of the address. */
function CreateThis({ id, onCreated }: { id: string; onCreated: () => void }) {
  return (
    <ProjectForm
      title="Create this project"
      isMain
      button="Create project"
      testId="add-repository"
      pointers={repositoryPointers("/repositories/0")}
      onSubmit={async (form) => {
        await client.projects.create({ id, repositories: repositoriesOf(form) });
        onCreated();
      }}
    >
      {(problemAt) => <RepositoryFields at="/repositories/0" problemAt={problemAt} required={false} />}
    </ProjectForm>
  );
}

function AddRepository({ project, onAdded }: { project: string; onAdded: () => void }) {
  return (
    <ProjectForm
      title="New repository"
      button="Add repository"
      isMain
      testId="add-repository"
      pointers={repositoryPointers("")}
      onSubmit={async (form) => {
        await client.projects.addRepository(project, repositoryOf(form));
        onAdded();
      }}
    >
      {(problemAt) => <RepositoryFields at="" problemAt={problemAt} />}
    </ProjectForm>
  );
}
