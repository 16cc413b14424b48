/** `/api/projects/:project/repos/:repo/fetch` and `/push`: repositories on other git servers. For authors and administrators. */
import { z } from "zod";
import { fetched, pushed, type Remote } from "../../git/remote.ts";
import { branchesView, branchName, commitView } from "../../protocol/projects.ts";
import type { RequestVariables } from "../base/context.ts";
import { withRemote } from "../base/git-remote.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { addressOf, permitWriting, REPOSITORY, refresh, repositoryParams } from "./projects.ts";

const url = z.string().max(2_000).meta({
  description: "The address of a git repository. The deployer lists its host in `DRAMATIS_HTTP_HOSTS`.",
  example: "https://git.example.com/shop/web.git",
});
const fetchBody = z
  .strictObject({
    url,
    branch: branchName.exactOptional().describe("The only branch to add. Default: all branches and tags."),
  })
  .meta({ example: { url: "https://git.example.com/shop/web.git" } });
const pushBody = z
  .strictObject({
    url,
    branch: branchName.exactOptional().describe("The branch to push. Default: the default branch."),
    to: branchName.exactOptional().describe("The branch of the remote. Default: the same name."),
  })
  .meta({ example: { url: "https://git.example.com/shop/web.git" } });
const errors = ["FORBIDDEN", "PERMISSION_DENIED", "CONFLICT", "TOO_LARGE", "UNAVAILABLE"] as const;

/** Uses a remote with the rights and the secrets of a project. */
function onRemote<Value>(
  { libraries, secrets, resolve, principal: { tenant } }: RequestVariables,
  project: string,
  address: string,
  use: (remote: Remote) => Promise<Value>,
): Promise<Value> {
  const credentials = (of: URL) => secrets().credentials({ tenant, projectId: project }, of);
  return withRemote(address, { mayReach: libraries(tenant).mayReach, resolve, credentials }, use);
}

export const remoteRoutes: readonly Route[] = [
  route({
    id: "fetchRepository",
    method: "post",
    path: `${REPOSITORY}/fetch`,
    tag: "projects",
    summary: "Add the branches and tags of a repository on another git server",
    description:
      "For authors and administrators. Reads the whole history. A branch moves only forward. The request carries the secrets of the project for the host.",
    params: repositoryParams,
    body: fetchBody,
    answers: ok("All branches of the repository.", branchesView),
    errors: [...errors],
    permit: permitWriting,
    handle: async ({ params, body }, ports) => {
      const { principal, projects } = ports;
      const { repository } = await projects().open(addressOf(principal, params));
      const imported = await onRemote(ports, params.project, body.url, async (remote) =>
        repository.importHistory(await fetched(remote, body.branch)),
      );
      await refresh(ports, params);
      return json(imported);
    },
  }),
  route({
    id: "pushRepository",
    method: "post",
    path: `${REPOSITORY}/push`,
    tag: "projects",
    summary: "Push a branch to a repository on another git server",
    description:
      "For authors and administrators. The branch of the remote moves only forward. The same request again changes nothing. The request carries the secrets of the project for the host.",
    params: repositoryParams,
    body: pushBody,
    answers: ok("The branch of the remote, and its commit.", commitView),
    errors: [...errors],
    permit: permitWriting,
    handle: async ({ params, body }, ports) => {
      const { principal, projects } = ports;
      const { repository, defaultBranch } = await projects().open(addressOf(principal, params));
      const { branch = defaultBranch, to = branch } = body;
      const oid = await onRemote(ports, params.project, body.url, (remote) =>
        pushed(remote, repository, branch, to),
      );
      return json({ branch: to, oid });
    },
  }),
];
