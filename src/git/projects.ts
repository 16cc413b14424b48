/**
 * The projects of all tenants, and access to their repositories.
 *
 * PROJECT-1  A deletion removes the rows first, and then the packs and vectors. So a reader sees a whole project or none.
 * PROJECT-2  Two days later, the first request of an isolate or the next deletion deletes the packs and vectors again, with packs that
 *            late writers stored. So a crash and a failing store leave nothing for good.
 * PROJECT-3  These deletions spare a new project of the same id.
 */
import {
  ARTIFACTS,
  type ProjectPart,
  type RemovedRepository,
  type RepositoryAddress,
} from "../d1/repositories.ts";
import { conflict, type DramatisError, notFound } from "../shared/errors.ts";
import { GitFiles } from "./git-files.ts";
import { GitRepository } from "./git-repository.ts";
import type { Identity } from "./objects.ts";
import { type GitPorts, StoredPacks, UNUSED_MS } from "./stored-packs.ts";
import type { Change } from "./trees.ts";

/** Attempts to commit to a branch that other writers move. */
const ATTEMPTS = 5;
/** The age of a deletion that ends, in milliseconds: the packs of late writers are unused by then. */
const FINISHED_MS = 2 * UNUSED_MS;
/** Deletions that one request ends. */
const MAX_FINISHED = 20;

export class Projects {
  /** `vectors` has the vectors of artifacts, if the deployment has some. */
  constructor(
    private readonly ports: GitPorts,
    private readonly vectors?: {
      delete(place: Required<RepositoryAddress>, ids: readonly string[]): Promise<void>;
    } | null,
  ) {}

  get rows(): GitPorts["rows"] {
    return this.ports.rows;
  }

  /** Opens a repository. Throws `NOT_FOUND` without it. */
  async open(address: RepositoryAddress): Promise<{ repository: GitRepository; defaultBranch: string }> {
    const view = await this.rows.repository(address);
    if (view === null) throw noProject(address);
    const { since, defaultBranch } = view;
    return { repository: this.at({ ...address, since }), defaultBranch };
  }

  at(address: RepositoryAddress): GitRepository {
    return new GitRepository(this.ports, address);
  }

  /**
   * Deletes a project, or a repository of it (PROJECT-1). Throws `NOT_FOUND`, and `CONFLICT` for the repository of the artifacts without its
   * project.
   */
  async remove({ tenant, project, repo }: ProjectPart): Promise<void> {
    if (repo !== undefined) await this.open({ tenant, project, repo });
    if (repo === ARTIFACTS)
      throw conflict(
        `Each project has the repository "${ARTIFACTS}". Delete single artifacts, or delete the project "${project}".`,
      );
    const removed = await this.rows.remove({ tenant, project, repo });
    if (removed.length === 0) throw noProject({ project, repo });
    try {
      for (const each of removed) await this.#empty(each);
    } catch (error) {
      console.warn(`Stores keep objects of the deleted project "${project}" for two days:`, error);
    }
    await this.finishRemovals();
  }

  /** Ends the deletions of all tenants that are two days old (PROJECT-2). Never rejects. */
  async finishRemovals(): Promise<void> {
    const report = (error: unknown) =>
      console.warn("Stores keep objects of deleted projects for now:", error);
    const left = await this.rows.removed(FINISHED_MS, MAX_FINISHED).catch(report);
    for (const removed of left ?? []) await this.#finish(removed).catch(report);
  }

  async #finish(removed: RemovedRepository): Promise<void> {
    await this.#empty(removed);
    await new StoredPacks(this.ports, removed).collect();
    await this.rows.forget(removed);
  }

  /** Deletes the packs and vectors of a deleted repository. No later repository has one of them (PROJECT-3). */
  async #empty({ packs, vectors, ...address }: RemovedRepository): Promise<void> {
    await new StoredPacks(this.ports, address).delete(packs);
    if (vectors.length > 0) await this.vectors?.delete(address, vectors);
  }

  /** Returns the files of a repository. Throws `NOT_FOUND` without it. */
  async files(address: RepositoryAddress): Promise<GitFiles> {
    await this.open(address);
    return new GitFiles(this.ports, address);
  }

  /** Commits files to the default branch, also if other writers move the branch. Makes no commit if no file changes. Throws as `GitRepository.commit`. */
  async write(
    address: RepositoryAddress,
    files: { changes: ReadonlyMap<string, Change>; message: string; author: Identity; at: number },
  ): Promise<{ branch: string; oid: string }> {
    const { repository, defaultBranch: branch } = await this.open(address);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const head = await repository.head(branch);
      const input = { ...files, parents: head === null ? [] : [head], skipsEmpty: true as const };
      const made = await repository.commit(branch, head, input);
      if (made !== "moved") return { branch, oid: made.oid };
    }
    throw conflict("Other writers move the branch. Try again in a moment.", {
      retriable: true,
    });
  }
}

function noProject({ project, repo }: { project: string; repo?: string | undefined }): DramatisError {
  return notFound(
    repo === undefined
      ? `There is no project "${project}".`
      : `There is no project "${project}" with a repository "${repo}".`,
  );
}
