/** `/git/:project/:repo`: repositories for `git clone` and `git fetch`. They read all branches, so the roles of a bundle's export read them. */
import { z } from "zod";
import { forbidden, notFound } from "../../shared/errors.ts";
import type { RequestVariables } from "../base/context.ts";
import { type Route, route } from "../openapi/route.ts";
import { addressOf, permitExport, repositoryParams } from "./projects.ts";

const REPOSITORY = "/git/:project/:repo" as const;
const packParams = repositoryParams.extend({
  file: z.string().max(100).meta({ description: "The file of a pack.", example: "pack-0a1b2c.idx" }),
});

const common = {
  method: "get",
  tag: "projects",
  errors: ["FORBIDDEN", "UNAVAILABLE"],
  permit: permitExport,
} as const;

type Params = z.output<typeof repositoryParams>;

const files = ({ principal, projects }: RequestVariables, params: Params) =>
  projects().files(addressOf(principal, params));

const answers = (description: string) =>
  [{ status: 200, description, type: "application/octet-stream" }] as const;

function answer(body: string | Uint8Array): Response {
  return new Response(body, {
    headers: { "content-type": "application/octet-stream", "cache-control": "no-store" },
  });
}

export const gitRoutes: readonly Route[] = [
  route({
    ...common,
    id: "readGitReferences",
    path: `${REPOSITORY}/info/refs`,
    summary: "Read the branches and tags for git",
    description: "For authors, operators and administrators. `git clone` reads this file and the next ones.",
    params: repositoryParams,
    query: z.object({
      service: z.string().exactOptional().describe("The program that git asks for."),
    }),
    answers: answers("The commits of the branches and tags."),
    handle: async ({ params, query }, ports) => {
      if (query.service === "git-receive-pack")
        throw forbidden("Git cannot push here. Import a bundle, or write files with the API.");
      return answer(await (await files(ports, params)).references());
    },
  }),
  route({
    ...common,
    id: "readGitHead",
    path: `${REPOSITORY}/HEAD`,
    summary: "Read the default branch for git",
    params: repositoryParams,
    answers: answers("The name of the default branch."),
    handle: async ({ params }, { principal, projects }) => {
      const { defaultBranch } = await projects().open(addressOf(principal, params));
      return answer(`ref: refs/heads/${defaultBranch}\n`);
    },
  }),
  route({
    ...common,
    id: "listGitPacks",
    path: `${REPOSITORY}/objects/info/packs`,
    summary: "List the packs for git",
    params: repositoryParams,
    answers: answers("The names of the packs."),
    handle: async ({ params }, ports) => answer(await (await files(ports, params)).packs()),
  }),
  route({
    ...common,
    id: "readGitPack",
    path: `${REPOSITORY}/objects/pack/:file`,
    summary: "Read a pack or its index for git",
    params: packParams,
    answers: answers("The file."),
    handle: async ({ params }, ports) => {
      const bytes = await (await files(ports, params)).pack(params.file);
      if (bytes === null) throw notFound("The repository has no such pack. Fetch again.");
      return answer(bytes);
    },
  }),
];
