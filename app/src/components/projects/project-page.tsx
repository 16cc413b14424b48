/** A project: its repositories, the form that adds a repository, and the deletion of the project. */
import { useCallback } from "react";
import { DramatisClientError } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf, momentOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { artifactsPath, PROJECTS_PATH } from "../../route.ts";
import { navigate } from "../../router.ts";
import { DeleteAction } from "../delete-action.tsx";
import { ErrorNote } from "../error-note.tsx";
import { Facts } from "../facts.tsx";
import { Loading } from "../loading.tsx";
import { PageBody } from "../page-body.tsx";
import { HeaderLink, PageHeader } from "../page-header.tsx";
import { ProjectForm, RepositoryFields, repositoryOf, repositoryPointers } from "./project-form.tsx";
import { RepositoryCard } from "./repository-card.tsx";

interface ProjectPageProps {
  id: string;
  onMenu: (() => void) | undefined;
}

export function ProjectPage({ id, onMenu }: ProjectPageProps) {
  usePageTitle(`Project ${id}`);
  const isAuthor = useHasRole("author");
  const load = useCallback((signal: AbortSignal) => client.projects.get(id, { signal }), [id]);
  const { value: project, error, reload } = useResource(load);
  const isMissing = error instanceof DramatisClientError && error.status === 404;
  return (
    <>
      <PageHeader title={project?.name ?? id} subtitle="Project" onMenu={onMenu}>
        {project !== undefined && (
          <HeaderLink to={artifactsPath(id)} data-testid="open-artifacts">
            Artifacts
          </HeaderLink>
        )}
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
        {project !== undefined && (
          <>
            <Facts
              facts={[
                ["Id", project.id],
                ["Created", momentOf(project.createdAt, new Date())],
              ]}
            />
            {project.repositories.map((repository) => (
              <RepositoryCard key={repository.id} project={id} repository={repository} onDeleted={reload} />
            ))}
            {isAuthor && (
              <>
                <AddRepository project={id} onAdded={reload} />
                <DeleteAction
                  kind="project"
                  asking={`Delete ${id} for good?`}
                  note="Deletes its repositories and artifacts. Agents and conversations of the project stay, and lose these files."
                  onDelete={async () => {
                    await client.projects.delete(id);
                    navigate(PROJECTS_PATH);
                  }}
                />
              </>
            )}
          </>
        )}
      </PageBody>
    </>
  );
}

/** Creates the project of the address. */
function CreateThis({ id, onCreated }: { id: string; onCreated: () => void }) {
  return (
    <ProjectForm
      title="Create it with a repository"
      button="Create project"
      testId="add-repository"
      pointers={repositoryPointers("/repositories/0")}
      onSubmit={async (form) => {
        await client.projects.create({ id, repositories: [repositoryOf(form)] });
        onCreated();
      }}
    >
      {(problemAt) => <RepositoryFields at="/repositories/0" problemAt={problemAt} />}
    </ProjectForm>
  );
}

function AddRepository({ project, onAdded }: { project: string; onAdded: () => void }) {
  return (
    <ProjectForm
      title="Add a repository"
      button="Add repository"
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
