/**
 * Projects that code declares.
 *
 * DECLARED-1  A declaration creates missing projects and repositories, and commits its files to a repository without commits. It changes no
 *             commit.
 */
import { z } from "zod";
import type { RepositoryView } from "../d1/repositories.ts";
import { filesBody, projectBody, repositoryBody } from "../protocol/projects.ts";
import { hasCode } from "../shared/errors.ts";
import { validate } from "../shared/validation.ts";
import type { Projects } from "./projects.ts";

const declaredSchema = projectBody.extend({
  tenant: z.string().min(1).default("local"),
  repositories: z.array(repositoryBody.extend({ files: filesBody.shape.files.exactOptional() })).default([]),
});

/** A project that code declares. The default of `tenant` is `local`. `files` has the first texts by their paths. */
export type DeclaredProject = z.input<typeof declaredSchema>;

const AUTHOR = { name: "Dramatis", email: "dramatis@users.invalid" };

/**
 * Creates the declared projects (DECLARED-1). Reads a project's rows, and the head of each repository with files. Throws `INVALID_INPUT` for an
 * invalid declaration.
 */
export async function declareProjects(
  projects: Projects,
  declared: readonly DeclaredProject[],
  now: number,
): Promise<void> {
  for (const { tenant, repositories, ...project } of validate(
    z.array(declaredSchema),
    declared,
    "/projects",
  )) {
    const existing = await repositoriesOf(projects, tenant, project);
    for (const { id: repo, defaultBranch, files } of repositories) {
      const address = { tenant, project: project.id, repo };
      if (!existing.some(({ id }) => id === repo))
        await unlessThere(projects.rows.addRepository(address, defaultBranch));
      if (files === undefined) continue;
      const { repository, defaultBranch: branch } = await projects.open(address);
      if ((await repository.head(branch)) !== null) continue;
      const encoder = new TextEncoder();
      const changes = new Map(
        Object.entries(files).map(([path, text]) => [path, { content: encoder.encode(text ?? "") }]),
      );
      // The first of several isolates makes the commit.
      const first = { parents: [], changes, message: "Begin", author: AUTHOR, at: now };
      await repository.commit(branch, null, first);
    }
  }
}

async function repositoriesOf(
  { rows }: Projects,
  tenant: string,
  project: { id: string; name?: string },
): Promise<readonly RepositoryView[]> {
  const view =
    (await rows.project(tenant, project.id)) ??
    (await unlessThere(rows.createProject(tenant, { ...project, repositories: [] }))) ??
    (await rows.project(tenant, project.id));
  return view?.repositories ?? [];
}

/** Awaits a creation; `undefined` if another isolate has been faster. */
async function unlessThere<Created>(creation: Promise<Created>): Promise<Created | undefined> {
  try {
    return await creation;
  } catch (error) {
    if (hasCode(error, "CONFLICT")) return undefined;
    throw error;
  }
}
