/**
 * Projects, their git repositories, and the branches and packs of repositories.
 *
 * REFS-1  References move together or not at all: each has its expected commit, or no reference moves.
 * REFS-2  A move, the rows of its packs, and its riders are one transaction. So each reference names a commit of a stored pack.
 * REFS-3  A move with the time of a deleted repository changes nothing in a later repository of the same id.
 * REFS-4  A deletion removes all rows and notes the packs and vectors to delete, in one transaction.
 */
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/system.ts";
import type { Project, ProjectSettings } from "../protocol/projects.ts";
import { defined } from "../shared/defined.ts";
import { conflict, invalid, notFound } from "../shared/errors.ts";
import { bothOrders, type Page, type PageOptions, pageOf, pageOptionsSchema } from "../shared/page.ts";
import { toIso } from "../shared/time.ts";
import { validate } from "../shared/validation.ts";
import { D1Queries, type Query } from "./queries.ts";

export interface RepositoryAddress {
  tenant: string;
  project: string;
  repo: string;
  /** The time of its creation, in milliseconds since the epoch. With it, a move reaches no later repository of the same id (REFS-3). */
  since?: number;
}

/** A deleted repository, with the packs and vectors to delete. */
export interface RemovedRepository extends Required<RepositoryAddress> {
  packs: string[];
  vectors: string[];
}

/** A repository for code, or the repository with the artifacts of its project. */
export type RepositoryKind = "code" | "artifacts";

export interface RepositoryView {
  id: string;
  kind: RepositoryKind;
  defaultBranch: string;
}

export interface StoredRepository extends RepositoryView {
  /** The time of its creation, in milliseconds since the epoch. */
  since: number;
}

export interface ProjectSummary {
  id: string;
  name?: string;
  createdAt: string;
}

export interface Reference {
  /** Such as `refs/heads/main`. */
  name: string;
  oid: string;
}

/** A move of a reference. `from` is its expected commit, `null` if it must not exist. */
export interface ReferenceMove {
  name: string;
  from: string | null;
  to: string;
}

export interface PackRow {
  name: string;
  bytes: number;
}

/**
 * A statement in the transaction of a move, and its values from `?5`. `?1` to `?3` are the place of the repository, and `?4` is a JSON list
 * of the moves. It must change nothing unless `HAS_MOVED`.
 */
export type Rider = [statement: string, ...values: (string | number | null)[]];

export const ARTIFACTS = "artifacts";
const MAX_REPOSITORIES = 50;

export type ProjectPart = Pick<RepositoryAddress, "tenant" | "project"> & { repo?: string | undefined };

type RemovedRow = Required<RepositoryAddress> & { packs: string; vectors: string };
type ProjectRow = { id: string; settings: string; created_at: number; tokens: number };
type SummaryRow = Pick<ProjectRow, "id" | "created_at"> & { name: string | null };
type RepositoryRow = { id: string; kind: RepositoryKind; default_branch: string; created_at: number };

const ADD_PROJECT = `INSERT INTO projects (tenant, id, settings, created_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING RETURNING id`;
const FIND_PROJECT = "SELECT id, settings, created_at, tokens FROM projects WHERE tenant = ?1 AND id = ?2";
const LIST_PROJECTS = bothOrders(
  (comparison, order) => `SELECT id, settings ->> '$.name' AS name, created_at FROM projects
WHERE tenant = ?1 AND id ${comparison} ?2 ORDER BY id ${order} LIMIT ?3`,
);
/** `?3` is a JSON list of repositories. Adds them if the project was created at `?4`. */
const ADD_FIRST_REPOSITORIES = `INSERT INTO repositories (tenant, project, id, kind, default_branch, created_at)
SELECT ?1, ?2, value ->> 'id', value ->> 'kind', value ->> 'defaultBranch', ?4 + key FROM json_each(?3)
WHERE EXISTS (SELECT 1 FROM projects WHERE tenant = ?1 AND id = ?2 AND created_at = ?4)
ON CONFLICT DO NOTHING`;
const ADD_REPOSITORY = `INSERT INTO repositories (tenant, project, id, kind, default_branch, created_at)
SELECT ?1, ?2, ?3, 'code', ?4, ?5
WHERE (SELECT COUNT(*) FROM repositories WHERE tenant = ?1 AND project = ?2) BETWEEN 1 AND ${MAX_REPOSITORIES - 1}
ON CONFLICT DO NOTHING RETURNING id`;
const REPOSITORIES = `SELECT id, kind, default_branch, created_at FROM repositories
WHERE tenant = ?1 AND project = ?2 ORDER BY created_at, id`;
const FIND_REPOSITORY = `SELECT id, kind, default_branch, created_at FROM repositories
WHERE tenant = ?1 AND project = ?2 AND id = ?3`;
const SET_DEFAULT_BRANCH = `UPDATE repositories SET default_branch = ?4
WHERE tenant = ?1 AND project = ?2 AND id = ?3`;
const LIST_REFS = `SELECT name, oid FROM git_refs
WHERE tenant = ?1 AND project = ?2 AND repo = ?3 ORDER BY name`;
const FIND_REF =
  "SELECT name, oid FROM git_refs WHERE tenant = ?1 AND project = ?2 AND repo = ?3 AND name = ?4";
const DELETE_REF = `DELETE FROM git_refs
WHERE tenant = ?1 AND project = ?2 AND repo = ?3 AND name = ?4 AND oid = coalesce(?5, oid)`;
const LIST_PACKS = `SELECT name, bytes FROM git_packs
WHERE tenant = ?1 AND project = ?2 AND repo = ?3 ORDER BY created_at, name`;

/** `?4` is a JSON list of moves. Reports whether a reference is elsewhere than at the member `at` of its move. */
const elsewhere = (at: "from" | "to") => `EXISTS (
  SELECT 1 FROM json_each(?4) AS move LEFT JOIN git_refs AS ref
    ON ref.tenant = ?1 AND ref.project = ?2 AND ref.repo = ?3 AND ref.name = move.value ->> 'name'
  WHERE ref.oid IS NOT move.value ->> '${at}')`;
/** The condition of a rider: all references are at their targets. */
export const HAS_MOVED = `NOT ${elsewhere("to")}`;
const MOVE = `INSERT INTO git_refs (tenant, project, repo, name, oid)
SELECT ?1, ?2, ?3, value ->> 'name', value ->> 'to' FROM json_each(?4)
WHERE EXISTS (SELECT 1 FROM repositories WHERE tenant = ?1 AND project = ?2 AND id = ?3
    AND created_at = coalesce(value ->> 'since', created_at)) AND NOT ${elsewhere("from")}
ON CONFLICT DO UPDATE SET oid = excluded.oid`;
/** `?5` is a JSON list of packs, `?6` the time. */
const ADD_PACKS = `INSERT INTO git_packs (tenant, project, repo, name, bytes, created_at)
SELECT ?1, ?2, ?3, value ->> 'name', value ->> 'bytes', ?6 FROM json_each(?5) WHERE ${HAS_MOVED}`;
/** `?5` is a JSON list of names. */
const REMOVE_PACKS = `DELETE FROM git_packs WHERE tenant = ?1 AND project = ?2 AND repo = ?3
AND name IN (SELECT value FROM json_each(?5)) AND ${HAS_MOVED}`;
const HAVE_MOVED = `SELECT 1 FROM repositories
WHERE tenant = ?1 AND project = ?2 AND id = ?3 AND ${HAS_MOVED}`;

/** `?3` is a repository, or `NULL` for all repositories of the project. `?4` is the time. */
const NOTE_REMOVED = `INSERT OR REPLACE INTO removed_repositories (tenant, project, repo, since, removed_at, packs, vectors)
SELECT tenant, project, id, created_at, ?4,
  (SELECT json_group_array(name) FROM git_packs WHERE tenant = ?1 AND project = ?2 AND repo = repositories.id),
  (SELECT json_group_array(vector) FROM artifacts
    WHERE tenant = ?1 AND project = ?2 AND vector IS NOT NULL AND repositories.kind = 'artifacts')
FROM repositories WHERE tenant = ?1 AND project = ?2 AND id = coalesce(?3, id)
RETURNING tenant, project, repo, since, packs, vectors`;
/** `?3` is as in `NOTE_REMOVED`. */
const REMOVE = [
  "DELETE FROM git_packs WHERE tenant = ?1 AND project = ?2 AND repo = coalesce(?3, repo)",
  "DELETE FROM git_refs WHERE tenant = ?1 AND project = ?2 AND repo = coalesce(?3, repo)",
  "DELETE FROM repositories WHERE tenant = ?1 AND project = ?2 AND id = coalesce(?3, id)",
  "DELETE FROM artifacts WHERE tenant = ?1 AND project = ?2 AND ?3 IS NULL",
  "DELETE FROM artifact_operations WHERE tenant = ?1 AND project = ?2 AND ?3 IS NULL",
  "DELETE FROM project_secrets WHERE tenant = ?1 AND project = ?2 AND ?3 IS NULL",
  "DELETE FROM projects WHERE tenant = ?1 AND id = ?2 AND ?3 IS NULL",
];
/** With the empty text as tenant, it reads the rows of all tenants. */
const REMOVED = `SELECT tenant, project, repo, since, packs, vectors FROM removed_repositories
WHERE tenant >= ?1 AND removed_at <= ?2 LIMIT ?3`;
const FORGET =
  "DELETE FROM removed_repositories WHERE tenant = ?1 AND project = ?2 AND repo = ?3 AND since = ?4";

const optionsSchema = pageOptionsSchema((cursor) => cursor !== "");
/** Follows each id. */
const AFTER_ALL = "\uffff";

/** The rows are in `DB`, for all tenants. */
export class D1Repositories {
  readonly #queries: D1Queries;

  constructor(
    database: D1Database,
    private readonly clock: Pick<Clock, "now" | "timer"> = systemClock,
  ) {
    this.#queries = new D1Queries(database, clock);
  }

  /** Creates a project with its repositories, and the repository of its artifacts. Throws `CONFLICT` if the id is in use. */
  async createProject(
    tenant: string,
    { id, name, repositories }: { id: string; name?: string; repositories: Omit<RepositoryView, "kind">[] },
  ): Promise<Project> {
    const artifacts = { id: ARTIFACTS, kind: "artifacts" as const, defaultBranch: "main" };
    const list = [...repositories.map((each) => ({ ...each, kind: "code" as const })), artifacts];
    const now = this.clock.now();
    const settings = JSON.stringify(defined({ name }));
    const [created = []] = await this.#queries.transact(
      [ADD_PROJECT, tenant, id, settings, now],
      [ADD_FIRST_REPOSITORIES, tenant, id, JSON.stringify(list), now],
    );
    if (created.length === 0) throw conflict(`The project "${id}" exists. Choose another id.`);
    return { ...toSummary({ id, name: name ?? null, created_at: now }), repositories: list };
  }

  async projects(tenant: string, options: PageOptions = {}): Promise<Page<ProjectSummary>> {
    const { limit, cursor, order } = validate(optionsSchema, options, "");
    const start = cursor ?? (order === "asc" ? "" : AFTER_ALL);
    const rows = await this.#queries.read<SummaryRow>(LIST_PROJECTS[order], tenant, start, limit + 1);
    return pageOf(rows, limit, toSummary, ({ id }) => id);
  }

  async project(tenant: string, id: string): Promise<Project | null> {
    const [row] = await this.#queries.read<ProjectRow>(FIND_PROJECT, tenant, id);
    if (row === undefined) return null;
    const repositories = await this.repositories(tenant, id);
    const { settings, tokens, ...summary } = row;
    // SAFETY: the column has the name and the settings.
    const { name = null, ...own } = JSON.parse(settings) as ProjectSettings & { name?: string };
    return {
      ...toSummary({ ...summary, name }),
      ...own,
      ...(own.budget && { spent: { tokens } }),
      repositories: repositories.map(({ since, ...view }) => view),
    };
  }

  /** Returns the repositories of a project, oldest first. */
  async repositories(tenant: string, project: string): Promise<StoredRepository[]> {
    return (await this.#queries.read<RepositoryRow>(REPOSITORIES, tenant, project)).map(toRepository);
  }

  /** Deletes the rows of a project, or of one repository (REFS-4). Returns the deleted repositories. */
  async remove({ tenant, project, repo }: ProjectPart): Promise<RemovedRepository[]> {
    const part = [tenant, project, repo ?? null] as const;
    const note: Query = [NOTE_REMOVED, ...part, this.clock.now()];
    const deletions = REMOVE.map((statement): Query => [statement, ...part]);
    const [removed = []] = await this.#queries.transact(note, ...deletions);
    // SAFETY: the statement returns these columns.
    return (removed as RemovedRow[]).map(toRemoved);
  }

  /** Returns repositories of all tenants that were deleted at least `age` milliseconds ago. */
  async removed(age: number, limit: number): Promise<RemovedRepository[]> {
    const until = this.clock.now() - age;
    return (await this.#queries.read<RemovedRow>(REMOVED, "", until, limit)).map(toRemoved);
  }

  /** Removes the note about a deleted repository after the deletion of all its packs and vectors. */
  async forget({ tenant, project, repo, since }: RemovedRepository): Promise<void> {
    await this.#queries.change(FORGET, tenant, project, repo, since);
  }

  /** Adds a repository for code. Throws `NOT_FOUND` without the project, and `CONFLICT`. */
  async addRepository(
    { tenant, project, repo }: RepositoryAddress,
    defaultBranch: string,
  ): Promise<RepositoryView> {
    const now = this.clock.now();
    const added = await this.#queries.change(ADD_REPOSITORY, tenant, project, repo, defaultBranch, now);
    if (added.length > 0) return { id: repo, kind: "code", defaultBranch };
    const existing = await this.project(tenant, project);
    if (existing === null) throw notFound(`There is no project "${project}".`);
    const isFull = existing.repositories.length >= MAX_REPOSITORIES;
    throw conflict(
      isFull
        ? `The project "${project}" has ${MAX_REPOSITORIES} repositories, which is the maximum. Create another project.`
        : `The project "${project}" has a repository "${repo}". Choose another id.`,
    );
  }

  async repository({ tenant, project, repo }: RepositoryAddress): Promise<StoredRepository | null> {
    const [row] = await this.#queries.read<RepositoryRow>(FIND_REPOSITORY, tenant, project, repo);
    return row === undefined ? null : toRepository(row);
  }

  async setDefaultBranch({ tenant, project, repo }: RepositoryAddress, branch: string): Promise<void> {
    await this.#queries.change(SET_DEFAULT_BRANCH, tenant, project, repo, branch);
  }

  /** Returns the branches and tags of a repository, by their names. */
  references({ tenant, project, repo }: RepositoryAddress): Promise<Reference[]> {
    return this.#queries.read<Reference>(LIST_REFS, tenant, project, repo);
  }

  /** Returns the commit of a reference; `null` without it. */
  async reference({ tenant, project, repo }: RepositoryAddress, name: string): Promise<string | null> {
    const [row] = await this.#queries.read<Reference>(FIND_REF, tenant, project, repo, name);
    return row?.oid ?? null;
  }

  /** Deletes a reference; with `at`, only at this commit. */
  async deleteReference(
    { tenant, project, repo }: RepositoryAddress,
    name: string,
    at?: string,
  ): Promise<void> {
    await this.#queries.change(DELETE_REF, tenant, project, repo, name, at ?? null);
  }

  /** Returns the packs of a repository, oldest first. */
  packs({ tenant, project, repo }: RepositoryAddress): Promise<PackRow[]> {
    return this.#queries.read<PackRow>(LIST_PACKS, tenant, project, repo);
  }

  /**
   * Moves references, adds and removes rows of packs, and runs riders. Returns `false`, and changes nothing, if a reference is elsewhere (REFS-1), or without the repository. Returns
   * `true` if all references are already at their targets.
   */
  async move(
    { tenant, project, repo, since }: RepositoryAddress,
    moves: readonly ReferenceMove[],
    {
      added = [],
      removed = [],
      riders = [],
    }: { added?: readonly PackRow[]; removed?: readonly string[]; riders?: readonly Rider[] } = {},
  ): Promise<boolean> {
    if (new Set(moves.map(({ name }) => name)).size < moves.length)
      throw invalid("Two moves name the same reference. Move each reference once.");
    const list = JSON.stringify(moves.map((move) => ({ ...move, since })));
    const query = (...[statement, ...values]: Rider): Query => [
      statement,
      tenant,
      project,
      repo,
      list,
      ...values,
    ];
    const results = await this.#queries.transact(
      query(MOVE),
      ...(added.length === 0 ? [] : [query(ADD_PACKS, JSON.stringify(added), this.clock.now())]),
      ...(removed.length === 0 ? [] : [query(REMOVE_PACKS, JSON.stringify(removed))]),
      ...riders.map((rider) => query(...rider)),
      query(HAVE_MOVED),
    );
    return (results.at(-1) ?? []).length > 0;
  }
}

function toSummary({ id, name, created_at }: SummaryRow): ProjectSummary {
  return { id, ...(name !== null && { name }), createdAt: toIso(created_at) };
}

function toRepository({ id, kind, default_branch, created_at }: RepositoryRow): StoredRepository {
  return { id, kind, defaultBranch: default_branch, since: created_at };
}

function toRemoved({ packs, vectors, ...address }: RemovedRow): RemovedRepository {
  return { ...address, packs: JSON.parse(packs), vectors: JSON.parse(vectors) };
}
