/** The pages of files and projects. The console loads them when a reader first opens one of them. */
import { filesPath, type Route } from "../route.ts";
import { FilesPage } from "./files/files-page.tsx";
import { ArtifactsPage } from "./projects/artifacts-page.tsx";
import { ProjectPage } from "./projects/project-page.tsx";
import { ProjectsPage } from "./projects/projects-page.tsx";

/** The routes of these pages. */
export type CodeRoute = Extract<Route, { page: "files" | "projects" | "project" | "artifacts" }>;

interface CodePagesProps {
  route: CodeRoute;
  onMenu: (() => void) | undefined;
}

export function CodePages({ route, onMenu }: CodePagesProps) {
  switch (route.page) {
    case "files": {
      const { owner, view, search = "" } = route;
      return <FilesPage key={filesPath(owner)} owner={owner} view={view} search={search} onMenu={onMenu} />;
    }
    case "projects":
      return <ProjectsPage onMenu={onMenu} />;
    case "project":
      return <ProjectPage key={route.id} id={route.id} view={route.view} onMenu={onMenu} />;
    case "artifacts":
      return <ArtifactsPage key={route.id} project={route.id} search={route.search ?? ""} onMenu={onMenu} />;
    default:
      return route satisfies never;
  }
}
