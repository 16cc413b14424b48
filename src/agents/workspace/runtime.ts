/**
 * A workspace: the files of a conversation or a run, on its own branch of the repositories of its project.
 *
 * WORKSPACE-2  The changes of an operation and its result are one transaction. A repeated operation returns this result, and changes nothing.
 *              The newest 50 operations have their results, and so have those of the last hour, up to 500.
 * WORKSPACE-3  Uncommitted files survive restarts of the actor. Committed files are in the branch, from which an actor without storage begins.
 *              An actor without uncommitted files takes the newest commit of its branch when it starts.
 * WORKSPACE-4  A commit is in the branch once. A commit that a crash interrupted ends before the next operation that changes files.
 * WORKSPACE-5  The branch begins at the default branch, or at the branch of the workspace in `from`. Its name is fixed at the first use.
 * WORKSPACE-6  Calls of agents read, write and commit no sensitive files. Calls with `mayUseSensitive` do.
 * WORKSPACE-7  A workspace forgets its branch and its files in a deleted repository. In a new repository of the same id it begins anew.
 * WORKSPACE-9  A deleted workspace refuses late calls.
 */
import type { StoredRepository } from "../../d1/repositories.ts";
import type { Projects } from "../../git/projects.ts";
import type { Clock } from "../../ports/clock.ts";
import { type SavedFile, savedWorkspace } from "../../protocol/saved-workspace.ts";
import {
  type BranchMergeStrategy,
  type CommitAuthor,
  isRead,
  WORKSPACE_INPUTS,
  type WorkspaceApi,
  type WorkspaceCall,
  type WorkspacePlace,
} from "../../protocol/workspace.ts";
import { defined } from "../../shared/defined.ts";
import { asDone, asResult, conflict, DramatisError, invalid, notFound } from "../../shared/errors.ts";
import { canonicalJson, type JsonObject } from "../../shared/json.ts";
import { fingerprint } from "../../shared/text.ts";
import { toIso } from "../../shared/time.ts";
import { validate, validateRequest } from "../../shared/validation.ts";
import type { ActorStores } from "../base/storage/schema-upgrade.ts";
import { BackgroundCommands, type WaitingOperations } from "./background.ts";
import { WorkspaceBackup } from "./backup.ts";
import { callKey, callSchema, type RepositoryOperation } from "./core/call.ts";
import { type FileOperation, listed, operate } from "./core/operations.ts";
import type { WorkingTree } from "./core/working-tree.ts";
import { type Opened, OpenRepositories } from "./open-repositories.ts";
import { OperationQueue } from "./operation-queue.ts";
import { runCommand } from "./shell/commands.ts";
import type { Shell } from "./shell/shell.ts";
import { deletedMeanwhile, WorkspaceStore } from "./store.ts";

export interface WorkspaceApplication {
  /** Throws `UNAVAILABLE` without the stores of repositories. */
  projects(): Projects;
  shell: Shell;
  /** The first segment of the names of branches. */
  branchPrefix: string;
  /** Reports whether agents must not read and write a file. */
  isSensitive(path: string): boolean;
}

export interface WorkspacePorts extends WorkspaceApplication {
  stores: ActorStores;
  clock: Pick<Clock, "now" | "timer">;
  /** Makes `wake` run in at most `milliseconds`. */
  arm(milliseconds: number): Promise<void>;
  operations: WaitingOperations;
  tenant(): string;
  id(): string;
  /** Throws `INVALID_INPUT` if the actor is in another place than its id says. */
  checkPlace?(): void;
}

/** Attempts to merge into a branch that other writers move. */
const MERGE_ATTEMPTS = 5;

export class WorkspaceRuntime implements WorkspaceApi {
  readonly #store: WorkspaceStore;
  readonly #repositories: OpenRepositories;
  readonly #queue: OperationQueue;
  readonly #backup: WorkspaceBackup;
  readonly #background: BackgroundCommands;

  constructor(private readonly ports: WorkspacePorts) {
    this.#store = new WorkspaceStore({ ...ports.stores, clock: ports.clock });
    this.#repositories = new OpenRepositories(this.#store, ports.projects, ports.tenant);
    this.#queue = new OperationQueue(ports.clock);
    const branch = () => this.#ownBranch;
    this.#backup = new WorkspaceBackup(this.#store, this.#repositories, branch, ports.isSensitive);
    this.#background = new BackgroundCommands({
      ...{ ...ports, store: this.#store, workspace: () => this.#address },
      change: (id, repo, change) =>
        this.#queue.run(id, async () => {
          const { project } = this.#store.record ?? {};
          if (project === undefined) throw deletedMeanwhile(repo);
          await this.#endCommit(project);
          return change(await this.#repositories.open(project, repo));
        }),
    });
  }

  /** Moves the command in the background on. */
  wake(): number | null {
    return this.#background.wake();
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  checkStorage(): void {
    void this.#store.record;
  }

  async perform(place: WorkspacePlace, given: WorkspaceCall) {
    return asResult(async () => {
      const call = validateRequest(callSchema, given) as WorkspaceCall;
      const operation = {
        kind: call.kind,
        input: validate(WORKSPACE_INPUTS[call.kind], call.input, ""),
      };
      if (call.kind === "shell.output" || call.kind === "shell.stop") {
        await this.#use(place);
        return call.kind === "shell.output"
          ? this.#background.output()
          : this.#background.stop(String(call.input.id));
      }
      if (isRead(call.kind)) {
        await this.#use(place);
        return this.#read(place.project, call, operation as FileOperation);
      }
      return this.#queue.run(call.key, async (signal) => {
        await this.#use(place);
        return this.#change(place.project, call, operation, signal);
      });
    });
  }

  async cancel(key: string) {
    return asDone(() => this.#queue.cancel(key));
  }

  async view(place: WorkspacePlace) {
    return asResult(async () => {
      const views = (await this.#use(place)) ?? (await this.#repositories.list(place.project));
      const { version } = this.#store;
      const repositories = await Promise.all(
        views.map(async (view) => {
          const { branch, tree } = await this.#repositories.opened(place.project, view);
          const { id, defaultBranch } = view;
          return { id, defaultBranch, base: branch.base, head: branch.head, changes: tree.status() };
        }),
      );
      return { branch: this.#ownBranch, version, repositories };
    });
  }

  async commits(place: WorkspacePlace, { repo, limit }: { repo?: string; limit: number }) {
    return asResult(async () => {
      await this.#use(place);
      const { git, branch } = await this.#repositories.open(place.project, repo);
      const commits = branch.head === null ? [] : await git.log(branch.head, limit);
      return {
        commits: commits.map(({ oid, parents, message, author, at }) => ({
          ...{ oid, parents: [...parents], message: message.trimEnd() },
          ...{ author: author.name, time: toIso(at) },
        })),
      };
    });
  }

  async saved({ from, mayUseSensitive }: Parameters<WorkspaceApi["saved"]>[0]) {
    return asResult(() =>
      this.#queue.run("saved", async () => {
        const { project } = this.#store.record ?? {};
        if (project === undefined) return null;
        await this.#endCommit(project);
        return this.#backup.saved(project, from, mayUseSensitive === true);
      }),
    );
  }

  async restore(saved: Parameters<WorkspaceApi["restore"]>[0]) {
    return asResult(() =>
      this.#queue.run("restore", async () => {
        await this.#backup.undo();
        await this.#background.forget();
        this.#store.reset();
        for (const part of [this.#repositories, this.#backup]) part.forget();
        if (saved === null) return [];
        this.ports.checkPlace?.();
        return this.#backup.restore(validateRequest(savedWorkspace, saved));
      }),
    );
  }

  async restoreFile(file: SavedFile) {
    return asResult(() => this.#queue.run("restore", () => this.#backup.restoreFile(file)));
  }

  async forget(given: string) {
    return asDone(async () => {
      const callId = validateRequest(callKey, given);
      await this.#background.forgetCall(callId);
      this.#store.forget(callId);
    });
  }

  async remove() {
    return asDone(() =>
      this.#queue.run("remove", async () => {
        const { record } = this.#store;
        if (record !== undefined) {
          for (const { repo, since } of this.#store.branches())
            await this.#repositories.git(record.project, repo, since).deleteBranch(record.branch);
          await this.#background.forget();
          await this.ports.shell.remove?.(this.#address);
        }
        this.#store.remove();
      }),
    );
  }

  async #read(project: string, call: WorkspaceCall, operation: FileOperation): Promise<JsonObject> {
    const opened = await this.#repositories.open(project, operation.input.repo);
    return this.#operate(operation, opened, this.#allowed(call, opened.tree), call);
  }

  #operate(
    operation: FileOperation,
    opened: Opened,
    tree: WorkingTree,
    call: WorkspaceCall,
  ): Promise<JsonObject> {
    return operate(operation, tree, {
      head: this.#allowed(call, opened.head),
      base: async () => this.#allowed(call, await this.#repositories.base(opened)),
      isForPerson: call.isForPerson ?? false,
    });
  }

  /** Returns a copy of a tree with the files that a call may use (WORKSPACE-6). */
  #allowed({ mayUseSensitive }: WorkspaceCall, tree: WorkingTree): WorkingTree {
    return mayUseSensitive ? tree.fork() : tree.without(this.ports.isSensitive);
  }

  async #change(
    project: string,
    call: WorkspaceCall,
    { input }: { input: unknown },
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const { kind, key, author } = call;
    // A repeated call of the tool has another handle.
    const { handle: _, ...given } = call.input;
    const receipt = `${key}/${fingerprint(canonicalJson({ kind, input: given }))}`;
    await this.#endCommit(project);
    // SAFETY: `perform` has checked the input by the schema of its kind.
    const operation = { kind, input } as FileOperation | RepositoryOperation;
    const opened = await this.#repositories.open(project, operation.input.repo);
    const known = this.#store.receipt(receipt);
    if (known !== undefined) return known;
    const tree = this.#allowed(call, opened.tree);
    if (operation.kind === "repo.commit") {
      for (const path of tree.changes.keys()) tree.checkAllowed(path);
      return this.#commit(project, opened, operation.input.message, author, receipt);
    }
    if (operation.kind === "repo.merge") return this.#merge(opened, operation.input, author, receipt);
    if (operation.kind === "shell.start") {
      const { skills } = call;
      return this.#background.start(opened, tree, { id: key, receipt, skills }, operation.input);
    }
    const result =
      operation.kind === "shell.exec"
        ? await runCommand(this.ports.shell, tree, operation.input, {
            ...{ workspace: this.#address, signal, skills: call.skills },
          })
        : await this.#operate(operation, opened, tree, call);
    this.#store.save(opened.branch, opened.tree.changes, tree.changes, receipt, result);
    opened.tree.adopt(tree);
    return result;
  }

  /** Notes the commit, and makes it. A crash in between leaves the note (WORKSPACE-4). */
  async #commit(
    project: string,
    { view, tree, branch }: Opened,
    message: string,
    author: CommitAuthor,
    receipt: string,
  ): Promise<JsonObject> {
    if (tree.changes.size === 0) {
      const none = { repo: view.id, branch: this.#ownBranch, commit: branch.head, changes: [] };
      const result = { ...none, note: "There is nothing to commit." };
      this.#store.save(branch, tree.changes, tree.changes, receipt, result);
      return result;
    }
    this.#store.begin({ repo: view.id, message, author, at: this.ports.clock.now(), receipt });
    const result = await this.#endCommit(project);
    if (result === undefined) throw deletedMeanwhile(view.id);
    return result;
  }

  /** Makes the noted commit, if there is one. The same note makes the same commit, so it can be made again. */
  async #endCommit(project: string): Promise<JsonObject | undefined> {
    if (this.#store.pending !== undefined) await this.#repositories.list(project);
    const { pending } = this.#store;
    if (pending === undefined) return undefined;
    const { repo, message, author, at, receipt } = pending;
    const opened = await this.#repositories.open(project, repo);
    const { git, tree, branch } = opened;
    const made = await git
      .commit(this.#ownBranch, branch.created === 1 ? branch.head : null, {
        parents: branch.head === null ? [] : [branch.head],
        ...{ changes: tree.changes, message, author, at },
      })
      .catch((error: unknown) => {
        // The repository refused the commit. Any other failure may pass.
        if (error instanceof DramatisError && !error.retriable && error.code !== "UNAVAILABLE")
          this.#store.end();
        throw error;
      });
    if (made === "moved") {
      this.#store.end();
      opened.hasMoved = true;
      throw conflict(
        `Another writer moved the branch "${this.#ownBranch}" of "${repo}". Note your changes and revert them. Then the files are those of the branch, and you can make the changes again.`,
      );
    }
    const { items, ...rest } = listed(tree.status(), ({ path }) => path);
    const result = { repo, branch: this.#ownBranch, commit: made.oid, changes: items, ...rest };
    this.#store.end({ branch: { ...branch, head: made.oid, created: 1 }, receipt, result });
    this.#repositories.reopen(opened);
    return result;
  }

  /** Merges the branch into the default branch. Both go on at the merged commit (GITMERGE-3). */
  async #merge(
    opened: Opened,
    { strategy = "fail" }: { strategy?: BranchMergeStrategy | undefined },
    author: CommitAuthor,
    receipt: string,
  ): Promise<JsonObject> {
    const { view, git, tree, branch } = opened;
    const [own, into] = [this.#ownBranch, view.defaultBranch];
    if (tree.changes.size > 0)
      throw conflict(
        `"${view.id}" has files that are not committed: ${tree.changes.size}. Commit them, and merge again.`,
      );
    if (branch.created === 0) throw conflict(`The branch "${own}" of "${view.id}" has no commit to merge.`);
    if ((await git.head(into)) === null && branch.head !== null) await git.createBranch(into, branch.head);
    for (let attempt = 0; attempt < MERGE_ATTEMPTS; attempt++) {
      const made = await git
        .merge(into, own, strategy, author, this.ports.clock.now())
        .catch((error: unknown) => {
          // The branch may have moved all the same.
          this.#repositories.reopen(opened);
          throw error;
        });
      if (made === "moved") continue;
      const result = { repo: view.id, branch: own, into };
      if ("conflicts" in made) return { ...result, conflicts: made.conflicts };
      const merged = { ...result, commit: made.oid };
      this.#store.end({ branch: { ...branch, base: made.oid, head: made.oid }, receipt, result: merged });
      this.#repositories.reopen(opened);
      return merged;
    }
    throw conflict(`Other writers move "${into}". Merge again in a moment.`, {
      retriable: true,
    });
  }

  get #address() {
    return { tenant: this.ports.tenant(), id: this.ports.id() };
  }

  get #ownBranch(): string {
    return this.#store.record?.branch ?? `${this.ports.branchPrefix}/${this.ports.id()}`;
  }

  /** Checks the project, and creates the tables before the first use. Returns the repositories if it has read them. */
  async #use({ project, from }: WorkspacePlace): Promise<readonly StoredRepository[] | undefined> {
    this.#backup.forget();
    const { project: known } = this.#store.record ?? {};
    if (known !== undefined && known !== project)
      throw invalid(`The workspace belongs to the project "${known}", not to "${project}".`);
    if (known !== undefined) return undefined;
    this.ports.checkPlace?.();
    const views = await this.#repositories.list(project);
    // The workspace may be deleted during the list.
    if (this.#store.isRemoved) throw notFound("The workspace was deleted. Begin a new conversation or run.");
    // A call without a repository leaves no storage.
    if (views.length > 0) this.#store.create({ project, branch: this.#ownBranch, ...defined({ from }) });
    return views;
  }
}
