/**
 * `/api/conversations/:id/workspace` and `/api/runs/:id/workspace`: the files of a conversation or a run for people. Readers of the owner read
 * them. Speakers of a conversation commit, and authors merge.
 */
import { ulid } from "ulid";
import { z } from "zod";
import type { ConversationApi } from "../../protocol/conversation-api.ts";
import {
  WORKSPACE_INPUTS,
  type WorkspaceKind,
  type WorkspaceMerge,
  workspaceCommit,
  workspaceCommits,
  workspaceDiff,
  workspaceFile,
  workspaceFiles,
  workspaceMerge,
  workspaceOf,
  workspaceView,
} from "../../protocol/workspace.ts";
import { defined } from "../../shared/defined.ts";
import { conflict, unwrap } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { mayAuthor } from "../../shared/principal.ts";
import type { RequestVariables } from "../base/context.ts";
import { empty, json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";
import { authorOf, permitWriting } from "./projects.ts";
import { RUN, runOf, runParams } from "./runs.ts";

const number = (most: number) => z.coerce.number().int().min(1).max(most).exactOptional();
const { repo, path } = WORKSPACE_INPUTS["repo.tree"].shape;
const repoQuery = z.object({
  repo: repo.unwrap().exactOptional().meta({ description: "Default: the first repository.", example: "app" }),
});
const folderQuery = repoQuery.extend({
  path: path.unwrap().exactOptional().meta({ description: "A folder or a file.", example: "src" }),
});
const fileQuery = repoQuery.extend({
  path: WORKSPACE_INPUTS["repo.read"].shape.path.meta({
    description: "The path of a file.",
    example: "src/index.ts",
  }),
  from: number(10_000_000).describe("The first line. Default: 1."),
  lines: number(2_000).describe("Lines at most. Default: 2 000."),
});

interface OwnerKind {
  prefix: string;
  tag: "conversations" | "runs";
  noun: string;
  path: string;
  params: typeof conversationParams | typeof runParams;
  find(ports: RequestVariables, id: string): Promise<Pick<ConversationApi, "workspace">>;
}

const OF_CONVERSATIONS = {
  ...{ prefix: "", tag: "conversations", noun: "conversation" },
  ...{ path: CONVERSATION, params: conversationParams, find: findConversation },
} as const satisfies OwnerKind;
const OF_RUNS: OwnerKind = {
  ...{ prefix: "Run", tag: "runs", noun: "run" },
  ...{ path: RUN, params: runParams, find: (ports, id) => runOf(ports, { id }) },
};
const WORKSPACE = `${OF_CONVERSATIONS.path}/workspace` as const;

/** Returns the workspace of an owner that the principal may read, and its place. */
async function workspaceFor(ports: RequestVariables, owner: Pick<ConversationApi, "workspace">) {
  const { id, ...place } = unwrap(await owner.workspace(ports.principal));
  return { place, workspace: await ports.actors.workspace(ports.principal.tenant, id) };
}

async function perform(
  ports: RequestVariables,
  owner: Pick<ConversationApi, "workspace">,
  kind: WorkspaceKind,
  input: object,
) {
  const { place, workspace } = await workspaceFor(ports, owner);
  const author = authorOf(ports.principal);
  const allowed = mayAuthor(ports.principal) ? { mayUseSensitive: true as const } : {};
  // SAFETY: the schema of the operation has checked the input.
  const call = {
    ...{ kind, input: defined(input) as JsonObject, key: `http_${ulid()}`, author, ...allowed },
    isForPerson: true as const,
  };
  return unwrap(await workspace.perform(place, call));
}

const readRoutes = ({ prefix, tag, noun, path, params, find }: OwnerKind): Route[] => [
  route({
    id: `get${prefix}Workspace`,
    method: "get",
    path: `${path}/workspace`,
    tag,
    summary: `Read the repositories of a ${noun}`,
    description: `The list is empty if the project of the ${noun} has no repositories.`,
    params,
    answers: ok("The branch, its commits and the uncommitted changes.", workspaceView),
    errors: ["UNAVAILABLE"],
    handle: async ({ params }, ports) => {
      const { place, workspace } = await workspaceFor(ports, await find(ports, params.id));
      return json(unwrap(await workspace.view(place)));
    },
  }),
  route({
    id: `list${prefix}WorkspaceFiles`,
    method: "get",
    path: `${path}/workspace/files`,
    tag,
    summary: `List the files of a ${noun}`,
    params,
    query: folderQuery,
    answers: ok("The paths, with uncommitted files.", workspaceFiles),
    errors: ["PERMISSION_DENIED", "UNAVAILABLE"],
    handle: async ({ params, query }, ports) =>
      json(await perform(ports, await find(ports, params.id), "repo.tree", query)),
  }),
  route({
    id: `read${prefix}WorkspaceFile`,
    method: "get",
    path: `${path}/workspace/file`,
    tag,
    summary: `Read a text file of a ${noun}`,
    params,
    query: fileQuery,
    answers: ok("Lines of the file.", workspaceFile),
    errors: ["PERMISSION_DENIED", "UNAVAILABLE"],
    handle: async ({ params, query }, ports) =>
      json(await perform(ports, await find(ports, params.id), "repo.read", query)),
  }),
  route({
    id: `diff${prefix}Workspace`,
    method: "get",
    path: `${path}/workspace/diff`,
    tag,
    summary: `Read the changes of a ${noun}`,
    params,
    query: folderQuery.extend({
      against: z
        .enum(["head", "base"])
        .exactOptional()
        .describe(
          "With `head`, the uncommitted changes. With `base`, all changes since the branch began. Default: `head`.",
        ),
    }),
    answers: ok("A unified difference.", workspaceDiff),
    errors: ["PERMISSION_DENIED", "UNAVAILABLE"],
    handle: async ({ params, query }, ports) =>
      json(await perform(ports, await find(ports, params.id), "repo.diff", query)),
  }),
  route({
    id: `list${prefix}WorkspaceCommits`,
    method: "get",
    path: `${path}/workspace/commits`,
    tag,
    summary: `List the commits of a ${noun}`,
    params,
    query: repoQuery.extend({ limit: number(200).describe("Default: 50.") }),
    answers: ok("The commits of the branch and their ancestors, the newest first.", workspaceCommits),
    errors: ["UNAVAILABLE"],
    handle: async ({ params, query: { limit = 50, ...query } }, ports) => {
      const { place, workspace } = await workspaceFor(ports, await find(ports, params.id));
      return json(unwrap(await workspace.commits(place, { ...query, limit })));
    },
  }),
];

export const workspaceRoutes: readonly Route[] = [
  ...readRoutes(OF_CONVERSATIONS),
  ...readRoutes(OF_RUNS),
  route({
    id: "deleteRunWorkspace",
    method: "delete",
    path: `${RUN}/workspace`,
    tag: "runs",
    summary: "Delete the workspace of a run",
    description:
      "Deletes the branch of an ended run and its uncommitted files. It cannot be restored. The workspace of a sub-workflow is deleted with the workspace of the first run.",
    params: runParams,
    answers: [{ status: 204, description: "The workspace is deleted." }],
    errors: ["CONFLICT", "UNAVAILABLE"],
    handle: async ({ params }, ports) => {
      const run = await runOf(ports, params);
      const { status } = unwrap(await run.status(ports.principal));
      if (status === "running" || status === "waiting")
        throw conflict("The run works in its workspace. Cancel the run, or wait for its end.");
      const { id } = unwrap(await run.workspace(ports.principal));
      if (id !== workspaceOf({ runId: params.id }).id)
        throw conflict(`The run shares the workspace "${id}". Delete it with its own run.`);
      unwrap(await (await ports.actors.workspace(ports.principal.tenant, id)).remove());
      return empty();
    },
  }),
  route({
    id: "commitWorkspace",
    method: "post",
    path: `${WORKSPACE}/commit`,
    tag: "conversations",
    summary: "Commit the files of a conversation",
    description: "Commits all uncommitted changes to the branch of the conversation.",
    params: conversationParams,
    body: repoQuery
      .extend({ message: WORKSPACE_INPUTS["repo.commit"].shape.message })
      .strict()
      .meta({ example: { message: "Fix the sum" } }),
    answers: ok("The commit.", workspaceCommit),
    errors: ["FORBIDDEN", "PERMISSION_DENIED", "CONFLICT", "UNAVAILABLE"],
    handle: async ({ params, body }, ports) => {
      const conversation = await findConversation(ports, params.id);
      unwrap(await conversation.checkSpeaker(ports.principal));
      return json(await perform(ports, conversation, "repo.commit", body));
    },
  }),
  route({
    id: "mergeWorkspace",
    method: "post",
    path: `${WORKSPACE}/merge`,
    tag: "conversations",
    summary: "Merge the branch of a conversation",
    description:
      "For authors and administrators. Merges the branch into the default branch of the repository. With conflicts, nothing is merged. The journal of the conversation has the merge.",
    params: conversationParams,
    body: repoQuery
      .extend({ strategy: WORKSPACE_INPUTS["repo.merge"].shape.strategy.unwrap().exactOptional() })
      .strict()
      .meta({ example: { strategy: "fail" } }),
    optionalBody: true,
    answers: ok("The merged commit, or the conflicts.", workspaceMerge),
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: permitWriting,
    handle: async ({ params, body }, ports) => {
      const conversation = await findConversation(ports, params.id);
      const merged = await perform(ports, conversation, "repo.merge", body);
      // SAFETY: the workspace returns this view.
      const { repo, branch, into, commit } = merged as unknown as WorkspaceMerge;
      if (commit !== undefined)
        unwrap(await conversation.noteMerge(ports.principal, { repo, branch, into, commit }));
      return json(merged);
    },
  }),
];
