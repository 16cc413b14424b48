/**
 * `/api/projects/:project/artifacts`: the documents of a project. Everyone in the tenant reads them. Authors and administrators change
 * them.
 */
import { z } from "zod";
import {
  ARTIFACT_INPUTS,
  artifactSummary,
  artifactView,
  MAX_FOUND,
  writtenArtifact,
} from "../../protocol/artifacts.ts";
import type { RequestVariables } from "../base/context.ts";
import { filter, pageSchema } from "../base/query.ts";
import { empty, json, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { authorOf, PROJECT, permitWriting, projectParams } from "./projects.ts";

const ARTIFACT = `${PROJECT}/artifact` as const;

const { path, content, type, ifVersion } = ARTIFACT_INPUTS["artifact.write"].shape;
const { version } = ARTIFACT_INPUTS["artifact.read"].shape;
const folder = path.meta({ description: "A folder. Its artifacts are listed.", example: "decisions" });
const listQuery = pageSchema.omit({ order: true }).extend({
  type: filter("Only artifacts of this type."),
  path: folder.exactOptional(),
  q: ARTIFACT_INPUTS["artifact.search"].shape.query
    .describe(
      `The question, or words of it. The best artifacts come first: one page of at most ${MAX_FOUND}.`,
    )
    .exactOptional(),
  cursor: z.string().min(1).max(1_024).describe("The `nextCursor` of the previous page.").exactOptional(),
});
const pathQuery = z.object({
  path: path.meta({ description: "The path of an artifact.", example: "decisions/use-jwt.md" }),
});
const readQuery = pathQuery.extend({
  version: version.unwrap().describe("A version of the past. Default: the newest.").exactOptional(),
});
const deleteQuery = pathQuery.extend({
  ifVersion: ifVersion.unwrap().describe("Fails if the artifact has changed since.").exactOptional(),
});
const writeBody = z
  .strictObject({
    content,
    type: type.unwrap().exactOptional(),
    ifVersion: ifVersion.unwrap().exactOptional(),
  })
  .meta({ example: { content: "# Use JWT\n" } });

const placeOf = ({ principal: { tenant } }: RequestVariables, { project }: { project: string }) => ({
  ...{ tenant, project },
});

export const artifactRoutes: readonly Route[] = [
  route({
    id: "listArtifacts",
    method: "get",
    path: `${PROJECT}/artifacts`,
    tag: "projects",
    summary: "List or search the artifacts of a project",
    description: "By their paths, or with `q` the best first.",
    params: projectParams,
    query: listQuery,
    answers: onePage("artifacts", artifactSummary),
    errors: ["UNAVAILABLE"],
    handle: async ({ params, query: { q, limit, ...query } }, ports) => {
      const place = placeOf(ports, params);
      if (q === undefined) return page("artifacts", await ports.artifacts().list(place, { ...query, limit }));
      const most = Math.min(limit ?? MAX_FOUND, MAX_FOUND);
      const items = await ports.artifacts().search(place, { ...query, query: q, limit: most });
      return page("artifacts", { items });
    },
  }),
  route({
    id: "readArtifact",
    method: "get",
    path: ARTIFACT,
    tag: "projects",
    summary: "Read an artifact",
    params: projectParams,
    query: readQuery,
    answers: ok("The artifact.", artifactView),
    errors: ["UNAVAILABLE"],
    handle: async ({ params, query }, ports) =>
      json(await ports.artifacts().read(placeOf(ports, params), query)),
  }),
  route({
    id: "writeArtifact",
    method: "put",
    path: ARTIFACT,
    tag: "projects",
    summary: "Write an artifact",
    description: "For authors and administrators. `ifVersion` is the version that you have read.",
    params: projectParams,
    query: pathQuery,
    body: writeBody,
    answers: ok("The new version.", writtenArtifact),
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params, query, body }, ports) => {
      const author = authorOf(ports.principal);
      return json(await ports.artifacts().write(placeOf(ports, params), { ...query, ...body }, { author }));
    },
  }),
  route({
    id: "deleteArtifact",
    method: "delete",
    path: ARTIFACT,
    tag: "projects",
    summary: "Delete an artifact",
    description: "For authors and administrators. Earlier versions stay in the repository.",
    params: projectParams,
    query: deleteQuery,
    answers: [{ status: 204, description: "It is deleted." }],
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params, query }, ports) => {
      await ports.artifacts().delete(placeOf(ports, params), query, { author: authorOf(ports.principal) });
      return empty();
    },
  }),
];
