/** `/api/projects/:project/secrets`: the secrets of a project (SECRET-1). Operators and administrators write them. */
import { projectSecretBody, projectSecretList, projectSecretView } from "../../protocol/project-secrets.ts";
import { defined } from "../../shared/defined.ts";
import { conflict, notFound } from "../../shared/errors.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { empty, json, nothingNamed } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { PROJECT, permitExport, permitSettings, projectParams } from "./projects.ts";

const SECRETS = `${PROJECT}/secrets` as const;
const SECRET = `${SECRETS}/:secret` as const;
const secretParams = projectParams.extend({
  secret: definitionIdSchema.meta({
    description: "Id of a secret of the project.",
    example: "stock-service",
  }),
});

export const projectSecretRoutes: readonly Route[] = [
  route({
    id: "putProjectSecret",
    method: "put",
    path: SECRET,
    tag: "projects",
    summary: "Store a secret of a project",
    description:
      "For operators and administrators. Requests of `http.request` in the project's conversations and runs carry the secret to its hosts. Needs the variable `SECRETS_KEY`.",
    params: secretParams,
    body: projectSecretBody,
    answers: ok("The secret, without its value.", projectSecretView),
    errors: ["FORBIDDEN", "CONFLICT", "UNSUPPORTED", "UNAVAILABLE"],
    permit: permitSettings,
    handle: async (
      { params: { project, secret }, body },
      { principal: { tenant }, projects, secrets, clock },
    ) => {
      const stored = await secrets().put({ tenant, projectId: project }, secret, body, clock.now());
      if (stored !== undefined) return json(stored);
      if ((await projects().rows.project(tenant, project)) === null)
        throw notFound(
          `There is no project "${project}". Create it first: \`POST /api/projects\` with \`{"id": "${project}"}\`.`,
        );
      throw conflict(`The project "${project}" has as many secrets as it may have. Delete one.`);
    },
  }),
  route({
    id: "listProjectSecrets",
    method: "get",
    path: SECRETS,
    tag: "projects",
    summary: "List the secrets of a project",
    description: "Without their values. For authors, operators and administrators.",
    params: projectParams,
    answers: ok("All secrets, by their ids.", projectSecretList),
    errors: ["FORBIDDEN", "UNAVAILABLE"],
    permit: permitExport,
    handle: async ({ params: { project } }, { principal: { tenant }, projects, secrets }) => {
      if ((await projects().rows.project(tenant, project)) === null) throw nothingNamed("project", project);
      const { keyProblem } = secrets();
      return json({
        secrets: await secrets().list({ tenant, projectId: project }),
        ...defined({ problem: keyProblem }),
      });
    },
  }),
  route({
    id: "deleteProjectSecret",
    method: "delete",
    path: SECRET,
    tag: "projects",
    summary: "Delete a secret of a project",
    description: "For operators and administrators. Requests that begin later do not carry it.",
    params: secretParams,
    answers: [{ status: 204, description: "The secret is deleted." }],
    errors: ["FORBIDDEN", "UNAVAILABLE"],
    permit: permitSettings,
    handle: async ({ params: { project, secret } }, { principal: { tenant }, secrets }) => {
      if (await secrets().remove({ tenant, projectId: project }, secret)) return empty();
      throw nothingNamed("secret", secret);
    },
  }),
];
