/** The repositories of a workspace, opened at its branch. They keep the files that they have read. */
import type { StoredRepository } from "../../d1/repositories.ts";
import type { GitRepository } from "../../git/git-repository.ts";
import type { Projects } from "../../git/projects.ts";
import { invalid } from "../../shared/errors.ts";
import { type BaseFile, WorkingTree } from "./core/working-tree.ts";
import type { BranchRow, WorkspaceStore } from "./store.ts";

export interface Opened {
  view: StoredRepository;
  git: GitRepository;
  branch: BranchRow;
  /** The files of the newest commit. */
  head: WorkingTree;
  tree: WorkingTree;
  /** Another writer moved the branch, so the next commit fails. Without changes, the repository is opened again. */
  hasMoved?: true;
}

export class OpenRepositories {
  /** By their ids and the times of their creation. */
  readonly #opened = new Map<string, Promise<Opened>>();

  constructor(
    private readonly store: WorkspaceStore,
    private readonly projects: () => Projects,
    private readonly tenant: () => string,
  ) {}

  /** Returns the repositories of a project with code. Forgets deleted repositories (WORKSPACE-7). */
  async list(project: string): Promise<readonly StoredRepository[]> {
    // The list says nothing about repositories that are added while it is read.
    const known = this.store.record === undefined ? [] : this.store.branches();
    const found = await this.projects().rows.repositories(this.tenant(), project);
    const views = found.filter(({ kind }) => kind === "code");
    for (const { repo, since } of known) {
      if (views.some((view) => view.id === repo && view.since === since)) continue;
      if (this.store.branches().some((branch) => branch.repo === repo && branch.since === since))
        this.store.forgetRepository(repo);
      this.#opened.delete(keyOf({ id: repo, since }));
    }
    return views;
  }

  /** Returns a repository at the branch of the workspace. By default the first repository with code. Throws `INVALID_INPUT` without it. */
  async open(project: string, given?: string): Promise<Opened> {
    const views = await this.list(project);
    const view = given === undefined ? views[0] : views.find(({ id }) => id === given);
    if (view === undefined)
      throw invalid(
        views.length === 0
          ? `The project "${project}" has no repository for code. Create it with POST /api/projects and {"id": "${project}", "repositories": [{"id": "app"}]}.`
          : `The project "${project}" has no repository "${given}" for code. It has: ${views.map(({ id }) => id).join(", ")}.`,
      );
    return this.opened(project, view);
  }

  async opened(project: string, view: StoredRepository): Promise<Opened> {
    const key = keyOf(view);
    const opening = this.#opened.get(key) ?? this.#keep(view, this.git(project, view.id, view.since));
    const opened = await opening;
    if (!opened.hasMoved || opened.tree.changes.size > 0) return opened;
    if (this.#opened.get(key) === opening) this.#opened.delete(key);
    return this.opened(project, view);
  }

  forget(): void {
    this.#opened.clear();
  }

  /** Opens a repository again, after its branch has moved. */
  reopen({ view, git }: Opened): void {
    this.#keep(view, git);
  }

  git(project: string, repo: string, since: number): GitRepository {
    return this.projects().at({ tenant: this.tenant(), project, repo, since });
  }

  async base({ git, branch: { base } }: Opened): Promise<WorkingTree> {
    return (await treesAt(git, base)).head;
  }

  #keep(view: StoredRepository, git: GitRepository): Promise<Opened> {
    const opening = this.#begin(view, git);
    this.#opened.set(keyOf(view), opening);
    opening.catch(() => this.#opened.delete(keyOf(view)));
    return opening;
  }

  async #begin(view: StoredRepository, git: GitRepository): Promise<Opened> {
    const changes = this.store.changes(view.id);
    const known = this.store.branches().find(({ repo }) => repo === view.id);
    const own = await git.head(this.store.record?.branch ?? "");
    // A workspace that lost its storage begins at its branch. Without uncommitted files it follows its branch, or the branch of its start
    // (WORKSPACE-3).
    const isCurrent =
      known !== undefined &&
      (changes.size > 0 || (known.created === 1 && (own ?? known.head) === known.head));
    const branch = isCurrent ? known : await this.#place(view, git, own);
    return { view, git, branch, ...(await treesAt(git, branch.head, changes)) };
  }

  /** Stores and returns the branch of a repository. `own` is its newest commit, if the repository has it. */
  async #place(view: StoredRepository, git: GitRepository, own: string | null): Promise<BranchRow> {
    const { from } = this.store.record ?? {};
    // The start of a new branch (WORKSPACE-5). Other branches may have another prefix.
    const parent = from && (await git.branches()).find(({ name }) => name.endsWith(`/${from}`));
    const start = (parent || undefined)?.oid ?? (await git.head(view.defaultBranch));
    const base = own === null || start === null ? start : await git.mergeBase(own, start);
    const { id: repo, since } = view;
    const branch = { repo, since, base: base ?? own, head: own ?? start, created: own === null ? 0 : 1 };
    this.store.putBranch(branch);
    return branch;
  }
}

function keyOf({ id, since }: Pick<StoredRepository, "id" | "since">): string {
  return `${id} ${since}`;
}

/** Returns the files of a commit, with and without changes. */
export async function treesAt(
  git: GitRepository,
  commit: string | null,
  changes?: WorkingTree["changes"],
): Promise<{ head: WorkingTree; tree: WorkingTree }> {
  const files = commit === null ? new Map<string, BaseFile>() : await git.tree(commit);
  const head = new WorkingTree(files, (oid) => git.blob(oid));
  return { head, tree: head.with(changes) };
}
