/**
 * The workspaces of conversations and runs: a branch of the repositories of a project, with uncommitted files.
 *
 * WORKSPACE-1  A conversation has the workspace `conv-{id}`, and a run `run-{id}`. Calls reach no other workspace, except that of a caller who
 *              shares it.
 */
import { z } from "zod";
import type { Result } from "../shared/errors.ts";
import type { CallContext, WorkspaceLink } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";
import type { Skill } from "./definition-parts.ts";
import type { WorkspaceDataApi } from "./saved-workspace.ts";
import { time } from "./scalars.ts";

const repo = z
  .string()
  .min(1)
  .max(64)
  .describe("The id of a repository of the project; its first repository when absent.")
  .optional();
const path = z.string().min(1).max(1_024);
const file = path.describe("The path of a file from the root of the repository, such as src/index.ts.");
const folder = path.describe("Only files in this folder, or this file.").optional();
const text = z.string().max(1_900_000);

/** Milliseconds that a command may take, by default and at most. */
export const COMMAND_MS = { default: 30_000, max: 120_000 };
/** Milliseconds that a command in the background may take, by default and at most. */
export const BACKGROUND_MS = { default: 60 * 60_000, max: 24 * 60 * 60_000 };

/** The ways to combine two histories and to treat conflicts. */
export const BRANCH_MERGE_STRATEGIES = ["rebase", "fail", "force"] as const;
export type BranchMergeStrategy = (typeof BRANCH_MERGE_STRATEGIES)[number];

const command = z
  .string()
  .min(1)
  .max(100_000)
  .describe("A command of Bash. Its folder is the root of the repository.");

export const WORKSPACE_INPUTS = {
  "repo.tree": z.object({ repo, path: folder }),
  "repo.read": z.object({
    ...{ repo, path: file },
    from: z.int().min(1).describe("The first line; 1 when absent.").optional(),
    lines: z.int().min(1).max(2_000).describe("Lines at most; 2 000 when absent.").optional(),
  }),
  "repo.write": z.object({ repo, path: file, content: text.describe("The whole new content of the file.") }),
  "repo.edit": z.object({
    ...{ repo, path: file },
    before: text.min(1).describe("The exact text to replace, with its spaces. It must occur once."),
    after: text.describe("The new text."),
    all: z.boolean().describe("Replace each occurrence.").optional(),
  }),
  "repo.search": z.object({
    repo,
    query: z.string().min(1).max(1_000).describe("A text, or a regular expression with `regex`."),
    regex: z.boolean().describe("The query is a regular expression in the syntax of RE2.").optional(),
    ignoreCase: z.boolean().optional(),
    path: folder,
    limit: z.int().min(1).max(500).describe("Lines at most; 100 when absent.").optional(),
  }),
  "repo.diff": z.object({
    ...{ repo, path: folder },
    against: z
      .enum(["head", "base"])
      .describe("`head`: the uncommitted changes, the default. `base`: all changes since the branch began.")
      .optional(),
  }),
  "repo.commit": z.object({
    repo,
    message: z.string().min(1).max(10_000).describe("The message: a short line, then details."),
  }),
  "repo.merge": z.object({
    repo,
    strategy: z
      .enum(BRANCH_MERGE_STRATEGIES)
      .describe(
        "`fail`, the default: a commit with both branches as parents. `rebase`: the commits of the branch after those of the default branch. `force`: as `fail`, and the branch wins each conflict.",
      )
      .optional(),
  }),
  "shell.exec": z.object({
    ...{ repo, command },
    timeoutMs: z
      .int()
      .min(1)
      .max(COMMAND_MS.max)
      .describe(`Milliseconds that the command may take; ${COMMAND_MS.default} when absent.`)
      .optional(),
  }),
  "shell.start": z.object({
    ...{ repo, command },
    timeoutMs: z
      .int()
      .min(1)
      .max(BACKGROUND_MS.max)
      .describe(`Milliseconds that the command may take; ${BACKGROUND_MS.default} when absent.`)
      .optional(),
    /** The handle of the deferred operation that gets the result. */
    handle: z.string().min(1).max(2_000),
  }),
  "shell.output": z.object({}),
  "shell.stop": z.object({
    id: z.string().min(1).max(500).describe("The operation id of the call that started the command."),
  }),
};

export type WorkspaceKind = keyof typeof WORKSPACE_INPUTS;
export const WORKSPACE_KINDS = Object.keys(WORKSPACE_INPUTS) as WorkspaceKind[];

/** The operations on the command in the background. A task cannot defer its result, so tasks have no such actions. */
const BACKGROUND_KINDS = ["shell.start", "shell.output", "shell.stop"] as const;
type BackgroundKind = (typeof BACKGROUND_KINDS)[number];
export type WorkspaceActionKind = Exclude<WorkspaceKind, BackgroundKind>;
export const WORKSPACE_ACTION_KINDS = WORKSPACE_KINDS.filter(
  (kind): kind is WorkspaceActionKind => !BACKGROUND_KINDS.some((other) => other === kind),
);

const READS: readonly WorkspaceKind[] = [
  "shell.output",
  "repo.tree",
  "repo.read",
  "repo.search",
  "repo.diff",
];

/** Reports whether an operation only reads. */
export function isRead(kind: WorkspaceKind): boolean {
  return READS.includes(kind);
}

export interface CommitAuthor {
  name: string;
  email: string;
}

/** One operation on a workspace. */
export interface WorkspaceCall {
  kind: WorkspaceKind;
  input: JsonObject;
  /** A repeated call with this key and the same input returns the first result. */
  key: string;
  author: CommitAuthor;
  /** The skills of the calling agent. Absent without skills. */
  skills?: readonly Skill[];
  /** The caller is a person who may read and commit sensitive files. */
  mayUseSensitive?: true;
  /** The result is for a person: lists and differences may be longer than for a model. */
  isForPerson?: true;
}

const change = z.strictObject({ path: z.string(), change: z.enum(["added", "modified", "deleted"]) });

export const workspaceView = z
  .strictObject({
    branch: z.string().describe("The branch in each repository."),
    version: z.int().describe("Ascends with each operation that changes files."),
    repositories: z.array(
      z.strictObject({
        id: z.string(),
        defaultBranch: z.string(),
        base: z.string().nullable().describe("The commit at which the branch began."),
        head: z.string().nullable().describe("The newest commit of the branch."),
        changes: z.array(change).describe("The uncommitted changes, by path."),
      }),
    ),
  })
  .meta({ id: "Workspace", description: "The repositories of a conversation or a run." });

export type WorkspaceView = z.infer<typeof workspaceView>;

const cut = z.string().describe("What was left out, and how to read it.").exactOptional();
const repoId = z.string().meta({ description: "Id of the repository.", example: "app" });

/** Results of operations, as people get them. */
export const workspaceFiles = z
  .strictObject({
    files: z.array(z.string()),
    changes: z.array(change).describe("The changes since the branch began, by path."),
    cut,
  })
  .meta({ id: "WorkspaceFiles", description: "The paths of files, in order." });
export type WorkspaceFiles = z.infer<typeof workspaceFiles>;
export const workspaceFile = z
  .strictObject({
    ...{ path: z.string(), content: z.string() },
    from: z.int().describe("The number of the first line."),
    to: z.int().describe("The number of the last line."),
    total: z.int().describe("Lines of the file."),
    cut,
  })
  .meta({ id: "WorkspaceFile", description: "Lines of a text file." });
export type WorkspaceFile = z.infer<typeof workspaceFile>;
export const workspaceDiff = z
  .strictObject({ diff: z.string().describe("Unified, as `git apply` reads it."), cut })
  .meta({ id: "WorkspaceDiff", description: "The changes of a conversation or a run." });
export type WorkspaceDiff = z.infer<typeof workspaceDiff>;
export const workspaceCommit = z
  .strictObject({
    ...{ repo: repoId, branch: z.string() },
    commit: z.string().nullable().describe("The newest commit of the branch."),
    changes: z.array(change).describe("The committed changes."),
    cut,
    note: z.string().exactOptional(),
  })
  .meta({ id: "WorkspaceCommit", description: "A commit on the branch of a conversation." });
export type WorkspaceCommit = z.infer<typeof workspaceCommit>;
export const workspaceCommits = z
  .strictObject({
    commits: z.array(
      z.strictObject({
        oid: z.string(),
        parents: z.array(z.string()),
        message: z.string(),
        author: z.string(),
        time,
      }),
    ),
  })
  .meta({ id: "WorkspaceCommits", description: "The newest commits of a branch, the newest first." });

export type WorkspaceCommits = z.infer<typeof workspaceCommits>;

export const workspaceMerge = z
  .strictObject({
    repo: repoId,
    branch: z.string().describe("The branch of the conversation."),
    into: z.string().describe("The default branch of the repository."),
    commit: z.string().describe("The newest commit of both branches. Absent with conflicts.").exactOptional(),
    conflicts: z
      .array(z.strictObject({ path: z.string() }))
      .describe("Files that both branches changed. Then nothing is merged.")
      .exactOptional(),
  })
  .meta({ id: "WorkspaceMerge", description: "The result of a merge into the default branch." });

export type WorkspaceMerge = z.infer<typeof workspaceMerge>;

export const mergeNote = workspaceMerge
  .pick({ repo: true, branch: true, into: true })
  .extend({ commit: z.string() });

export type MergeNote = z.infer<typeof mergeNote>;

export interface WorkspacePlace {
  project: string;
  /** The id of another workspace. This workspace begins at its branch. Absent: it begins at the default branch. */
  from?: string;
}

/** The RPC interface of the actor `Workspace`. Callers check the rights of people first. */
export interface WorkspaceApi extends WorkspaceDataApi {
  /** Runs an operation on the repositories of a project. The result depends on the kind. */
  perform(place: WorkspacePlace, call: WorkspaceCall): Promise<Result<JsonObject>>;
  /** Cancels a running command by the key of its call. */
  cancel(key: string): Promise<Result<null>>;
  view(place: WorkspacePlace): Promise<Result<WorkspaceView>>;
  /** Returns commits of the branch and their ancestors, the newest first. */
  commits(
    place: WorkspacePlace,
    request: { repo?: string; limit: number },
  ): Promise<Result<WorkspaceCommits>>;
  /** Deletes the stored results of a call's operations. Their keys begin with the call's id. */
  forget(callId: string): Promise<Result<null>>;
  /** Deletes the files and the branches. */
  remove(): Promise<Result<null>>;
}

/** The workspace of a call, as tools and tasks use it. */
export interface ToolWorkspace {
  /**
   * Runs an operation with its input. `key` makes it idempotent: pass the `operationId`, with a suffix if the tool runs several operations.
   * Throws `ToolError`, `INVALID_INPUT` for a project without repositories.
   *
   * @example
   * const { content } = await workspace.perform("repo.read", { path: "README.md" }, operationId);
   */
  perform(kind: WorkspaceKind, input: JsonObject, key: string): Promise<JsonObject>;
}

const id = z.string().min(1).max(200);
export const workspaceLinkSchema = z.strictObject({
  id: id.exactOptional(),
  from: id.exactOptional(),
}) satisfies z.ZodType<WorkspaceLink>;

export function workspaceOf({
  runId,
  conversationId,
  workspace,
}: Pick<CallContext, "runId" | "conversationId" | "workspace">): WorkspaceLink & { id: string } {
  return { id: runId === undefined ? `conv-${conversationId}` : `run-${runId}`, ...workspace };
}
