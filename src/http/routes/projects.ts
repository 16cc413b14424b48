/**
 * `/api/projects`: projects and their git repositories. Every principal of the tenant sees them. Authors and administrators create, write
 * and delete them. A bundle has the branches of all conversations, so authors, operators and administrators read it.
 */
import { z } from "zod";
import { ARTIFACTS, type RepositoryAddress } from "../../d1/repositories.ts";
import { MAX_BUNDLE_BYTES } from "../../git/limits.ts";
import type { Identity } from "../../git/objects.ts";
import type { LibraryPorts } from "../../library/authoring/authoring.ts";
import { parseReference } from "../../library/definitions/reference.ts";
import {
  branchesView,
  commitView,
  filesBody,
  type Project,
  projectBody,
  projectChange,
  projectSummary,
  projectView,
  repositoryBody,
  repositoryView,
} from "../../protocol/projects.ts";
import { DramatisError, forbidden } from "../../shared/errors.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
import { invalidAt } from "../../shared/validation.ts";
import { readBytes } from "../base/body.ts";
import type { RequestVariables } from "../base/context.ts";
import { pageSchema } from "../base/query.ts";
import { empty, json, nothingNamed, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const PROJECTS = "/api/projects";
export const PROJECT = `${PROJECTS}/:project` as const;
export const REPOSITORY = `${PROJECT}/repos/:repo` as const;

export const projectParams = z.object({
  project: definitionIdSchema.meta({ description: "Id of a project.", example: "shop" }),
});
export const repositoryParams = projectParams.extend({
  repo: definitionIdSchema.meta({ description: "Id of a repository of the project.", example: "web" }),
});

/** Throws `FORBIDDEN` unless the principal may write projects. */
export function permitWriting({ principal }: RequestVariables): void {
  if (mayAuthor(principal)) return;
  throw forbidden("Only authors and administrators may write projects and repositories.");
}

/** Throws `FORBIDDEN` unless the principal may read whole repositories. */
export function permitExport({ principal }: RequestVariables): void {
  if (mayAuthor(principal) || mayReadAll(principal)) return;
  throw forbidden("Only authors, operators and administrators may read a whole repository.");
}

/** Throws `FORBIDDEN` unless the principal may change settings: their limits hold for authors, too. */
export function permitSettings({ principal }: RequestVariables): void {
  if (mayReadAll(principal)) return;
  throw forbidden("Only operators and administrators may change the settings of projects.");
}

/** A deletion would remove the settings. */
function hasSettings({ id, name, createdAt, repositories, ...settings }: Project): boolean {
  return Object.keys(settings).length > 0;
}

/** Throws `INVALID_INPUT` unless the model profile exists. */
async function checkProfile({ registry }: LibraryPorts, reference: string): Promise<void> {
  try {
    await registry.modelProfile(parseReference(reference));
  } catch (error) {
    if (!(error instanceof DramatisError) || error.retriable) throw error;
    throw invalidAt("/modelProfileId", error.message);
  }
}

export const projectRoutes: readonly Route[] = [
  route({
    id: "createProject",
    method: "post",
    path: PROJECTS,
    tag: "projects",
    summary: "Create a project with its repositories",
    description:
      "For authors and administrators. The project also gets the repository `artifacts`. Needs the bindings `DB` and `BUCKET`.",
    body: projectBody,
    answers: [{ status: 201, description: "The project.", body: projectView, location: true }],
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ body }, { principal: { tenant }, projects }) => {
      const project = await projects().rows.createProject(tenant, body);
      return json(project, 201, `${PROJECTS}/${project.id}`);
    },
  }),
  route({
    id: "listProjects",
    method: "get",
    path: PROJECTS,
    tag: "projects",
    summary: "List the projects",
    description: "By their ids. Agents may name projects without a row: these have no repositories.",
    query: pageSchema,
    answers: onePage("projects", projectSummary),
    errors: ["UNAVAILABLE"],
    handle: async ({ query }, { principal: { tenant }, projects }) =>
      page("projects", await projects().rows.projects(tenant, query)),
  }),
  route({
    id: "getProject",
    method: "get",
    path: PROJECT,
    tag: "projects",
    summary: "Read a project and its repositories",
    params: projectParams,
    answers: ok("The project.", projectView),
    errors: ["UNAVAILABLE"],
    handle: async ({ params: { project: id } }, { principal: { tenant }, projects }) => {
      const project = await projects().rows.project(tenant, id);
      if (project === null) throw nothingNamed("project", id);
      return json(project);
    },
  }),
  route({
    id: "changeProject",
    method: "patch",
    path: PROJECT,
    tag: "projects",
    summary: "Change the name and the settings of a project",
    description:
      "For operators and administrators. The body is a merge patch: absent members stay, and `null` removes a setting. Other isolates of the Worker use a change within 10 seconds.",
    params: projectParams,
    body: projectChange,
    answers: ok("The project.", projectView),
    errors: ["FORBIDDEN", "UNAVAILABLE"],
    permit: permitSettings,
    handle: async (
      { params: { project: id }, body },
      { principal: { tenant }, projects, settings, libraries },
    ) => {
      const { modelProfileId } = body;
      if (typeof modelProfileId === "string") await checkProfile(libraries(tenant), modelProfileId);
      const { rows } = projects();
      await settings().change({ tenant, projectId: id }, body);
      const project = await rows.project(tenant, id);
      if (project === null) throw nothingNamed("project", id);
      return json(project);
    },
  }),
  route({
    id: "deleteProject",
    method: "delete",
    path: PROJECT,
    tag: "projects",
    summary: "Delete a project with its repositories and artifacts",
    description:
      "For authors and administrators. A project with settings or secrets is for operators and administrators. It cannot be restored. Agents and conversations that name the project stay, and have no repositories. A new project of the same id is empty.",
    params: projectParams,
    answers: [{ status: 204, description: "The project is deleted." }],
    errors: ["FORBIDDEN", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params: { project } }, variables) => {
      const { projects } = variables;
      const { tenant } = variables.principal;
      const view = await projects().rows.project(tenant, project);
      const secrets = await variables.secrets().list({ tenant, projectId: project });
      if (secrets.length > 0 || (view !== null && hasSettings(view))) permitSettings(variables);
      await projects().remove({ tenant, project });
      return empty();
    },
  }),
  route({
    id: "deleteRepository",
    method: "delete",
    path: REPOSITORY,
    tag: "projects",
    summary: "Delete a repository",
    description:
      "For authors and administrators. It cannot be restored. Workspaces lose their branches and files of the repository. `artifacts` is deleted only with its project.",
    params: repositoryParams,
    answers: [{ status: 204, description: "The repository is deleted." }],
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params }, { principal, projects }) => {
      await projects().remove(addressOf(principal, params));
      return empty();
    },
  }),
  route({
    id: "createRepository",
    method: "post",
    path: `${PROJECT}/repos`,
    tag: "projects",
    summary: "Add a repository to a project",
    description: "For authors and administrators. The repository is empty.",
    params: projectParams,
    body: repositoryBody,
    answers: [{ status: 201, description: "The repository.", body: repositoryView, location: true }],
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params: { project }, body }, { principal: { tenant }, projects }) => {
      const address = { tenant, project, repo: body.id };
      const added = await projects().rows.addRepository(address, body.defaultBranch);
      return json(added, 201, `${PROJECTS}/${project}/repos/${added.id}`);
    },
  }),
  route({
    id: "listBranches",
    method: "get",
    path: `${REPOSITORY}/branches`,
    tag: "projects",
    summary: "List the branches of a repository",
    description: "By their names. For authors, operators and administrators, as the bundle.",
    params: repositoryParams,
    answers: ok("All branches.", branchesView),
    errors: ["FORBIDDEN", "UNAVAILABLE"],
    permit: permitExport,
    handle: async ({ params }, { principal, projects }) => {
      const { repository } = await projects().open(addressOf(principal, params));
      return json({ branches: await repository.branches() });
    },
  }),
  route({
    id: "exportRepository",
    method: "get",
    path: `${REPOSITORY}/bundle`,
    tag: "projects",
    summary: "Read a repository as a git bundle",
    description:
      "For authors, operators and administrators: it has all branches, also those of conversations. `git clone FILE` reads it.",
    params: repositoryParams,
    answers: [{ status: 200, description: "The bundle.", type: "application/octet-stream" }],
    errors: ["FORBIDDEN", "TOO_LARGE", "UNAVAILABLE"],
    permit: permitExport,
    handle: async ({ params }, { principal, projects }) => {
      const { repository } = await projects().open(addressOf(principal, params));
      return new Response(await repository.exportBundle(), {
        headers: {
          "content-type": "application/octet-stream",
          "content-disposition": `attachment; filename="${params.project}-${params.repo}.bundle"`,
          "cache-control": "no-store",
        },
      });
    },
  }),
  route({
    id: "importRepository",
    method: "put",
    path: `${REPOSITORY}/bundle`,
    tag: "projects",
    summary: "Add the branches and tags of a git bundle",
    description:
      "For authors and administrators. The body is a bundle of a whole history: `git bundle create all.bundle --all`. A branch moves only forward.",
    params: repositoryParams,
    answers: ok("All branches of the repository.", branchesView),
    errors: ["FORBIDDEN", "INVALID_INPUT", "CONFLICT", "TOO_LARGE", "UNSUPPORTED", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params }, ports, { req }) => {
      const { principal, projects } = ports;
      const { repository } = await projects().open(addressOf(principal, params));
      const imported = await repository.importBundle(await readBytes(req.raw, MAX_BUNDLE_BYTES));
      await refresh(ports, params);
      return json(imported);
    },
  }),
  route({
    id: "writeFiles",
    method: "put",
    path: `${REPOSITORY}/files`,
    tag: "projects",
    summary: "Commit files to the default branch",
    description: "For authors and administrators. Other files stay as they are.",
    params: repositoryParams,
    body: filesBody,
    answers: ok("The commit.", commitView),
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params, body: { files, message } }, ports) => {
      const { principal, projects, clock } = ports;
      const encoder = new TextEncoder();
      const changes = new Map(
        Object.entries(files).map(([path, text]) => [
          path,
          text === null ? null : { content: encoder.encode(text) },
        ]),
      );
      const author = authorOf(principal);
      const address = addressOf(principal, params);
      const made = await projects().write(address, { changes, message, author, at: clock.now() });
      await refresh(ports, params);
      return json(made);
    },
  }),
];

/** Brings the index of artifacts up to date after a change of their repository. If it fails, the next list or search does it. */
export async function refresh(
  { artifacts, principal: { tenant } }: RequestVariables,
  { project, repo }: Omit<RepositoryAddress, "tenant">,
): Promise<void> {
  if (repo !== ARTIFACTS) return;
  await artifacts()
    .refresh({ tenant, project })
    .catch((error) => console.warn("The index of artifacts is behind:", error));
}

export function addressOf(
  { tenant }: Principal,
  { project, repo }: Omit<RepositoryAddress, "tenant">,
): RepositoryAddress {
  return { tenant, project, repo };
}

export function authorOf({ subject }: Principal): Identity {
  const email = subject.includes("@")
    ? subject
    : `${subject.replaceAll(/[^A-Za-z0-9._-]/g, "-")}@users.invalid`;
  return { name: subject, email };
}
