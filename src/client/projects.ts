/** Projects and workspaces over HTTP. */
import type { z } from "zod";
import type { ProjectSecretList, ProjectSecretView, projectSecretBody } from "../protocol/project-secrets.ts";
import type {
  Branches,
  commitView,
  filesBody,
  Project,
  ProjectChange,
  ProjectRepository,
  ProjectSummary,
  projectBody,
  repositoryBody,
} from "../protocol/projects.ts";
import type {
  BranchMergeStrategy,
  WorkspaceCommit,
  WorkspaceCommits,
  WorkspaceDiff,
  WorkspaceFile,
  WorkspaceFiles,
  WorkspaceMerge,
  WorkspaceView,
} from "../protocol/workspace.ts";
import { defined } from "../shared/defined.ts";
import type { PageRequest, RequestOptions } from "./options.ts";
import { pathOf, queryOf } from "./requests.ts";

/** Projects and their git repositories. Authors and administrators create, write and delete them. */
export interface ProjectsClient {
  list(options?: PageRequest): Promise<{ projects: ProjectSummary[]; nextCursor?: string }>;
  get(id: string, options?: RequestOptions): Promise<Project>;
  create(project: z.input<typeof projectBody>, options?: RequestOptions): Promise<Project>;
  /**
   * Changes the name and the settings. Absent members stay, and `null` removes a setting. For operators and administrators.
   *
   * @example
   * await client.projects.update("shop", { allowedModelProviders: ["anthropic"], budget: { tokens: 1_000_000 } });
   */
  update(id: string, change: ProjectChange, options?: RequestOptions): Promise<Project>;
  /** Lists the secrets, without their values. For authors, operators and administrators. */
  secrets(id: string, options?: RequestOptions): Promise<ProjectSecretList>;
  /**
   * Stores a secret. Requests of `http.request` in the project carry it to its hosts. For operators and administrators.
   *
   * @example
   * await client.projects.putSecret("shop", "stock", { value: key, hosts: ["api.example.com"], prefix: "Bearer " });
   */
  putSecret(
    id: string,
    secret: string,
    body: z.input<typeof projectSecretBody>,
    options?: RequestOptions,
  ): Promise<ProjectSecretView>;
  deleteSecret(id: string, secret: string, options?: RequestOptions): Promise<void>;
  /** Deletes a project with its repositories and artifacts. It cannot be restored. */
  delete(id: string, options?: RequestOptions): Promise<void>;
  /** Adds an empty repository. */
  addRepository(
    id: string,
    repository: z.input<typeof repositoryBody>,
    options?: RequestOptions,
  ): Promise<ProjectRepository>;
  /** Deletes a repository. The repository `artifacts` fails with `CONFLICT`. */
  deleteRepository(id: string, repo: string, options?: RequestOptions): Promise<void>;
  /** Lists the branches of a repository. For authors, operators and administrators. */
  branches(id: string, repo: string, options?: RequestOptions): Promise<Branches>;
  /**
   * Commits files to the default branch. `null` deletes a file, and other files stay.
   *
   * @example
   * const { oid } = await client.projects.writeFiles("shop", "web", { files: { "README.md": "# Shop\n" } });
   */
  writeFiles(
    id: string,
    repo: string,
    input: z.input<typeof filesBody>,
    options?: RequestOptions,
  ): Promise<z.infer<typeof commitView>>;
  /** Returns a repository as a git bundle. For authors, operators and administrators. */
  /**
   * Adds the branches and tags of a repository on another git server; `branch` names the only branch. For authors and administrators.
   *
   * @example
   * await client.projects.fetch("shop", "web", { url: "https://github.com/example/web.git" });
   */
  fetch(
    id: string,
    repo: string,
    from: { url: string; branch?: string },
    options?: RequestOptions,
  ): Promise<Branches>;
  /** Pushes a branch to a branch of a repository on another git server. Default: the default branch, under its own name. */
  push(
    id: string,
    repo: string,
    to: { url: string; branch?: string; to?: string },
    options?: RequestOptions,
  ): Promise<z.infer<typeof commitView>>;
  exportBundle(id: string, repo: string, options?: RequestOptions): Promise<ReadableStream<Uint8Array>>;
  /** Adds the branches and tags of a git bundle, and returns all branches. A branch moves only forward, otherwise it fails with `CONFLICT`. */
  importBundle(id: string, repo: string, bundle: Blob, options?: RequestOptions): Promise<Branches>;
}

/** The owner of a workspace, by its id. */
export type WorkspaceOwner = { conversation: string } | { run: string };

/** The first repository of the project when `repo` is absent. */
type InRepository = RequestOptions & { repo?: string };

/** The files of conversations and runs. */
export interface WorkspacesClient {
  /**
   * Returns the branch of a workspace, with its commits and uncommitted changes.
   *
   * @example
   * const { branch, repositories } = await client.workspaces.get({ run: id });
   */
  get(owner: WorkspaceOwner, options?: RequestOptions): Promise<WorkspaceView>;
  /** Deletes the branch and the uncommitted files of an ended run. It cannot be restored. */
  delete(run: string, options?: RequestOptions): Promise<void>;
  /** Lists the paths of files. `path` is a folder. */
  files(owner: WorkspaceOwner, options?: InRepository & { path?: string }): Promise<WorkspaceFiles>;
  /** Reads lines of a text file. */
  file(
    owner: WorkspaceOwner,
    path: string,
    options?: InRepository & { from?: number; lines?: number },
  ): Promise<WorkspaceFile>;
  /** Returns the uncommitted changes, or all changes of the branch with `against: "base"`. */
  diff(
    owner: WorkspaceOwner,
    options?: InRepository & { path?: string; against?: "head" | "base" },
  ): Promise<WorkspaceDiff>;
  /** Returns commits of the branch and their ancestors, the newest first. */
  commits(owner: WorkspaceOwner, options?: InRepository & { limit?: number }): Promise<WorkspaceCommits>;
  /** Commits all uncommitted changes of a conversation to its branch. For people who may write to the conversation. */
  commit(conversationId: string, message: string, options?: InRepository): Promise<WorkspaceCommit>;
  /**
   * Merges the branch of a conversation into the default branch. With `conflicts` nothing is merged. For authors and administrators.
   *
   * @example
   * const { commit, conflicts } = await client.workspaces.merge(id, { strategy: "rebase" });
   */
  merge(
    conversationId: string,
    options?: InRepository & { strategy?: BranchMergeStrategy },
  ): Promise<WorkspaceMerge>;
}

/** Sends requests. Each function returns the JSON of the response, except `remove` and `download`. */
interface Requests {
  get<Value>(path: string, options?: RequestOptions): Promise<Value>;
  list<Value>(path: string, page?: PageRequest): Promise<Value>;
  write<Value>(
    method: "POST" | "PUT" | "PATCH",
    path: string,
    body: object | Blob,
    options?: RequestOptions,
  ): Promise<Value>;
  remove(path: string, options?: RequestOptions): Promise<void>;
  download(path: string, options?: RequestOptions): Promise<ReadableStream<Uint8Array>>;
}

export function projectsClient({ get, list, write, remove, download }: Requests): ProjectsClient {
  const repository = (id: string, repo: string, ...parts: string[]) =>
    pathOf("projects", id, "repos", repo, ...parts);
  return {
    list: (page) => list("projects", page),
    get: (id, init) => get(pathOf("projects", id), init),
    create: (project, init) => write("POST", "projects", project, init),
    update: (id, change, init) => write("PATCH", pathOf("projects", id), change, init),
    secrets: (id, init) => get(pathOf("projects", id, "secrets"), init),
    putSecret: (id, secret, body, init) =>
      write("PUT", pathOf("projects", id, "secrets", secret), body, init),
    deleteSecret: (id, secret, init) => remove(pathOf("projects", id, "secrets", secret), init),
    delete: (id, init) => remove(pathOf("projects", id), init),
    addRepository: (id, added, init) => write("POST", pathOf("projects", id, "repos"), added, init),
    deleteRepository: (id, repo, init) => remove(repository(id, repo), init),
    branches: (id, repo, init) => get(repository(id, repo, "branches"), init),
    fetch: (id, repo, input, init) => write("POST", repository(id, repo, "fetch"), input, init),
    push: (id, repo, input, init) => write("POST", repository(id, repo, "push"), input, init),
    writeFiles: (id, repo, input, init) => write("PUT", repository(id, repo, "files"), input, init),
    exportBundle: (id, repo, init) => download(repository(id, repo, "bundle"), init),
    importBundle: (id, repo, bundle, init) => write("PUT", repository(id, repo, "bundle"), bundle, init),
  };
}

export function workspacesClient({ get, write, remove }: Requests): WorkspacesClient {
  const pathFor = (owner: WorkspaceOwner, ...parts: string[]) =>
    "run" in owner
      ? pathOf("runs", owner.run, "workspace", ...parts)
      : pathOf("conversations", owner.conversation, "workspace", ...parts);
  return {
    get: (owner, init) => get(pathFor(owner), init),
    delete: (run, init) => remove(pathFor({ run }), init),
    files: (owner, { signal, ...of } = {}) => get(pathFor(owner, "files") + queryOf(of), defined({ signal })),
    file: (owner, path, { signal, ...of } = {}) =>
      get(pathFor(owner, "file") + queryOf({ path, ...of }), defined({ signal })),
    diff: (owner, { signal, ...of } = {}) => get(pathFor(owner, "diff") + queryOf(of), defined({ signal })),
    commits: (owner, { signal, ...of } = {}) =>
      get(pathFor(owner, "commits") + queryOf(of), defined({ signal })),
    commit: (conversation, message, { signal, ...of } = {}) =>
      write("POST", pathFor({ conversation }, "commit"), { message, ...of }, defined({ signal })),
    merge: (conversation, { signal, ...of } = {}) =>
      write("POST", pathFor({ conversation }, "merge"), of, defined({ signal })),
  };
}
