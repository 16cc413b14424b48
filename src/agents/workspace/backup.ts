/**
 * The export and the import of a workspace.
 *
 * WORKBACKUP-1  A restored workspace has the commits and the uncommitted files of the exported workspace, on a branch of its own. A repository is
 *               restored only if the project has it with these commits. The removal of an import deletes only the branches that it has made.
 */
import type { GitRepository } from "../../git/git-repository.ts";
import type { LostFiles, SavedFile, SavedPiece, SavedWorkspace } from "../../protocol/saved-workspace.ts";
import { conflict, hasCode } from "../../shared/errors.ts";
import type { WorkingTree } from "./core/working-tree.ts";
import { type OpenRepositories, treesAt } from "./open-repositories.ts";
import type { WorkspaceStore } from "./store.ts";

/** Bytes and files of a piece. */
const [MAX_PIECE_BYTES, MAX_PIECE_FILES] = [4 * 1024 * 1024, 500];

export class WorkspaceBackup {
  /** The files of the repositories that are being restored. */
  readonly #trees = new Map<string, WorkingTree>();

  constructor(
    private readonly store: WorkspaceStore,
    private readonly repositories: OpenRepositories,
    private readonly branch: () => string,
    private readonly isSensitive: (path: string) => boolean,
  ) {}

  /** Returns a piece of the uncommitted files. Deletions come first, so that a file can take the place of a folder. */
  async saved(project: string, from: number, mayUseSensitive: boolean): Promise<SavedPiece> {
    const { store, repositories } = this;
    const files: SavedFile[] = [];
    const workspace: SavedWorkspace = { project, repositories: [] };
    for (const view of await repositories.list(project)) {
      if (!store.branches().some(({ repo }) => repo === view.id)) continue;
      const { tree, branch } = await repositories.opened(project, view);
      const { repo, base, head, created } = branch;
      workspace.repositories.push({ repo, base, head, hasBranch: created === 1 });
      const changes = [...tree.changes].filter(([path]) => mayUseSensitive || !this.isSensitive(path));
      const ordered = changes.toSorted(
        ([one, a], [other, b]) => Number(a !== null) - Number(b !== null) || (one < other ? -1 : 1),
      );
      files.push(...ordered.map(([path, file]) => ({ repo, path, file })));
    }
    let next = from;
    for (let bytes = 0; next < files.length && next - from < MAX_PIECE_FILES; next++) {
      bytes += files[next]?.file?.content.byteLength ?? 0;
      if (bytes > MAX_PIECE_BYTES && next > from) break;
    }
    const piece = { workspace, version: store.version, files: files.slice(from, next) };
    return next < files.length ? { ...piece, next } : piece;
  }

  /** Restores the branches of an export in an unused workspace. */
  async restore({ project, repositories: saved }: SavedWorkspace): Promise<Omit<LostFiles, "files">[]> {
    const { store, repositories } = this;
    const lost: Omit<LostFiles, "files">[] = [];
    const views = await repositories.list(project);
    for (const { repo, base, head, hasBranch } of saved) {
      const view = views.find(({ id }) => id === repo);
      const git = view && repositories.git(project, repo, view.since);
      const reason =
        git === undefined
          ? `The project "${project}" has no repository "${repo}".`
          : await missingCommit(git, repo, [base, head]);
      if (reason !== undefined || git === undefined || view === undefined) {
        lost.push({ repo, reason: reason ?? "" });
        continue;
      }
      const own = this.branch();
      const taken = conflict(`The repository "${repo}" has a branch "${own}". Import under another id.`);
      const { since } = view;
      const created = hasBranch && head !== null;
      const before = created ? await git.head(own) : null;
      if (before !== null && before !== head) throw taken;
      if (store.record === undefined) store.create({ project, branch: own });
      // The note comes first, so that a removal after a crash finds the branch.
      if (created && before === null) store.noteMade({ repo, since, at: head });
      store.putBranch({ repo, since, base, head, created: created ? 1 : 0 });
      if (created && !(await git.createBranch(own, head))) {
        store.forgetRepository(repo);
        throw taken;
      }
    }
    return lost;
  }

  /** Deletes the branches that an import has made, unless another writer has moved them. */
  async undo(): Promise<void> {
    const { store, repositories } = this;
    const { project, branch } = store.record ?? {};
    if (project === undefined || branch === undefined) return;
    for (const { repo, since, at } of store.made)
      await repositories.git(project, repo, since).deleteBranch(branch, at);
  }

  /** Restores an uncommitted file. Returns `false` if its repository was not restored. */
  async restoreFile({ repo, path, file }: SavedFile): Promise<boolean> {
    const { store } = this;
    const row = store.record && store.branches().find((branch) => branch.repo === repo);
    if (row === undefined) return false;
    const tree = this.#trees.get(repo) ?? (await this.#treeOf(store.record?.project ?? "", row));
    this.#trees.set(repo, tree);
    if (file === null) tree.drop([path]);
    else await tree.put(path, file);
    store.putChange(repo, path, tree.changes.get(path));
    return true;
  }

  /** Forgets the files that were read for a restoration. */
  forget(): void {
    this.#trees.clear();
  }

  async #treeOf(
    project: string,
    { repo, since, head }: { repo: string; since: number; head: string | null },
  ) {
    const git = this.repositories.git(project, repo, since);
    return (await treesAt(git, head, this.store.changes(repo))).tree;
  }
}

/** Returns the reason why a repository lacks a commit; `undefined` if it has all. */
async function missingCommit(
  git: GitRepository,
  repo: string,
  commits: readonly (string | null)[],
): Promise<string | undefined> {
  for (const commit of commits) {
    if (commit === null) continue;
    try {
      await git.log(commit, 1);
    } catch (error) {
      if (!hasCode(error, "NOT_FOUND")) throw error;
      return `The repository "${repo}" has no commit ${commit}. Import the bundle of the repository first.`;
    }
  }
  return undefined;
}
