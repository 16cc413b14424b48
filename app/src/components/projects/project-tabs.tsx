/** The links of the views of a project. */
import { useHasRole } from "../../hooks/use-me.ts";
import { artifactsPath, type ProjectView, projectPath } from "../../route.ts";
import { TABS, TabLink } from "../tab-link.tsx";

interface ProjectTabsProps {
  project: string;
  view: ProjectView | "artifacts" | undefined;
}

export function ProjectTabs({ project, view }: ProjectTabsProps) {
  const isOperator = useHasRole("operator");
  const isAuthor = useHasRole("author");
  return (
    <nav aria-label="Views of the project" className={TABS}>
      <TabLink to={projectPath(project)} isCurrent={view === undefined}>
        Repositories
      </TabLink>
      <TabLink to={artifactsPath(project)} isCurrent={view === "artifacts"} data-testid="open-artifacts">
        Artifacts
      </TabLink>
      {(isOperator || isAuthor) && (
        <TabLink to={projectPath(project, "secrets")} isCurrent={view === "secrets"}>
          Secrets
        </TabLink>
      )}
      <TabLink to={projectPath(project, "settings")} isCurrent={view === "settings"}>
        Settings
      </TabLink>
    </nav>
  );
}
