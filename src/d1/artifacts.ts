/**
 * The index of artifacts: one row for each file of a project's repository `artifacts`.
 *
 * ARTROW-1  The rows of a write and the move of its branch are one transaction.
 * ARTROW-2  `indexed` of a repository is the commit and the rules of its rows. If another writer moves the branch, the index is behind.
 * ARTROW-3  A key of a write is kept for a week, with the version that the write made.
 */
import type { Clock } from "../ports/clock.ts";
import { jsonBatches, textBatches } from "../ports/sql-batches.ts";
import { notFound } from "../shared/errors.ts";
import type { JsonObject } from "../shared/json.ts";
import { D1Queries } from "./queries.ts";
import { ARTIFACTS, HAS_MOVED, type Rider } from "./repositories.ts";

export interface ProjectPlace {
  tenant: string;
  project: string;
}

export interface ArtifactsState {
  branch: string;
  /** The time of its creation, in milliseconds since the epoch. */
  since: number;
  /** The newest commit; `null` without commits. */
  head: string | null;
  /** The commit of the index, and its rules. */
  indexed: string | null;
  /** The version that a write with the given key has made. */
  done: string | null;
  /** The vector of the row at the given path. */
  vector: string | null;
}

export interface ArtifactFacts {
  path: string;
  /** The object of its content. */
  oid: string;
  /** The rules that made the row. */
  rules: string;
  type: string | null;
  bytes: number;
  title: string;
  fields: JsonObject | null;
  /** The id of its vector; `null` if it has no vector. */
  vector: string | null;
  /** The stems of its words, with spaces around each. */
  words: string;
}

export interface ArtifactRow {
  path: string;
  type: string | null;
  bytes: number;
  title: string;
  /** JSON. */
  fields: string | null;
  updated_at: number;
}

export interface FoundRow extends ArtifactRow {
  vector: string | null;
  /** The indexes of the terms that it has, as JSON. */
  found: string;
  /** All rows of the project that the filter keeps. */
  size: number;
}

export interface ArtifactFilter {
  path?: string | undefined;
  types?: readonly string[] | undefined;
}

/** Rows that a search ranks. */
export const MAX_RANKED = 500;
const WEEK_MS = 7 * 24 * 3_600_000;
/** Follows each path. */
const AFTER_ALL = "\u{10ffff}";

const STATE = `SELECT repo.default_branch AS branch, repo.created_at AS since, ref.oid AS head, repo.indexed,
  (SELECT version FROM artifact_operations WHERE tenant = ?1 AND project = ?2 AND key = ?3) AS done,
  (SELECT vector FROM artifacts WHERE tenant = ?1 AND project = ?2 AND path = ?4) AS vector
FROM repositories AS repo LEFT JOIN git_refs AS ref ON ref.tenant = repo.tenant AND ref.project = repo.project
  AND ref.repo = repo.id AND ref.name = 'refs/heads/' || repo.default_branch
WHERE repo.tenant = ?1 AND repo.project = ?2 AND repo.id = '${ARTIFACTS}'`;
const SUMMARY = "path, type, bytes, title, fields, updated_at";
/** The range of a filter. `?5` is a JSON list of types, or `NULL`. */
const FILTER = `tenant = ?1 AND project = ?2 AND path > ?3 AND path < ?4
  AND (?5 IS NULL OR type IN (SELECT value FROM json_each(?5)))`;
const LIST = `SELECT ${SUMMARY} FROM artifacts WHERE ${FILTER} ORDER BY path LIMIT ?6`;
/** `?6` is a JSON list of terms. A term is a list of the forms to find. `?7` is a JSON list of vectors. */
const SEARCH = `WITH scored AS MATERIALIZED (
  SELECT ${SUMMARY}, vector, (SELECT json_group_array(term.key) FROM json_each(?6) AS term
    WHERE EXISTS (SELECT 1 FROM json_each(term.value) AS form WHERE instr(artifacts.words, form.value) > 0)) AS found
  FROM artifacts WHERE ${FILTER})
SELECT *, (SELECT COUNT(*) FROM scored) AS size FROM scored
WHERE found != '[]' OR vector IN (SELECT value FROM json_each(?7))
ORDER BY json_array_length(found) DESC, path LIMIT ${MAX_RANKED}`;
const OIDS = "SELECT path, oid, rules FROM artifacts WHERE tenant = ?1 AND project = ?2";
const PENDING = `SELECT path, oid, vector FROM artifacts
WHERE tenant = ?1 AND project = ?2 AND embedded = 0 AND vector IS NOT NULL LIMIT ?3`;
/** `?3` is a JSON list of vectors. */
const EMBEDDED = `UPDATE artifacts SET embedded = 1
WHERE tenant = ?1 AND project = ?2 AND vector IN (SELECT value FROM json_each(?3))`;

const PUT = `INSERT INTO artifacts (tenant, project, path, oid, rules, type, bytes, title, fields, vector, words, updated_at)
SELECT ?1, ?2, value ->> 'path', value ->> 'oid', value ->> 'rules', value ->> 'type', value ->> 'bytes', value ->> 'title',
  value ->> 'fields', value ->> 'vector', value ->> 'words', ?6 FROM json_each(?5) WHERE ${HAS_MOVED}
ON CONFLICT DO UPDATE SET rules = excluded.rules, type = excluded.type, bytes = excluded.bytes, title = excluded.title,
  fields = excluded.fields, words = excluded.words, oid = excluded.oid, vector = excluded.vector,
  updated_at = CASE WHEN oid = excluded.oid THEN updated_at ELSE excluded.updated_at END,
  embedded = 0`;
const REMOVE = `DELETE FROM artifacts
WHERE tenant = ?1 AND project = ?2 AND path IN (SELECT value FROM json_each(?5)) AND ${HAS_MOVED}`;
const TARGET = "(SELECT value ->> 'to' FROM json_each(?4) LIMIT 1)";
const MARK = `UPDATE repositories SET indexed = ${TARGET} || ' ' || ?5
WHERE tenant = ?1 AND project = ?2 AND id = ?3 AND indexed IS ?6 AND ${HAS_MOVED}`;
const DONE = `INSERT INTO artifact_operations (tenant, project, key, version, at)
SELECT ?1, ?2, ?5, ${TARGET}, ?6 WHERE ${HAS_MOVED} ON CONFLICT DO NOTHING`;
const FORGET = "DELETE FROM artifact_operations WHERE tenant = ?1 AND project = ?2 AND at < ?5";

/** The rows are in `DB`, for all tenants. */
export class D1Artifacts {
  readonly #queries: D1Queries;

  constructor(
    database: D1Database,
    private readonly clock: Pick<Clock, "now" | "timer">,
  ) {
    this.#queries = new D1Queries(database, clock);
  }

  /** Reads the state of a project's repository before a write. Throws `NOT_FOUND` without the project. */
  async state(
    { tenant, project }: ProjectPlace,
    { key = "", path = "" }: { key?: string | undefined; path?: string } = {},
  ): Promise<ArtifactsState> {
    const [state] = await this.#queries.read<ArtifactsState>(STATE, tenant, project, key, path);
    if (state !== undefined) return state;
    throw notFound(
      `There is no project "${project}". An author creates it with POST /api/projects and {"id": "${project}"}.`,
    );
  }

  /** Returns rows after a path, by their paths. */
  list(place: ProjectPlace, filter: ArtifactFilter, limit: number, after?: string): Promise<ArtifactRow[]> {
    const [tenant, project, from, to, types] = rangeOf(place, filter);
    const start = after?.startsWith(from) ? after : from;
    return this.#queries.read<ArtifactRow>(LIST, tenant, project, start, to, types, limit);
  }

  /** Returns the rows with one of the terms, or with one of the vectors. A term is a list of forms. */
  search(
    place: ProjectPlace,
    filter: ArtifactFilter,
    terms: readonly (readonly string[])[],
    vectors: readonly string[],
  ): Promise<FoundRow[]> {
    const range = rangeOf(place, filter);
    return this.#queries.read<FoundRow>(SEARCH, ...range, JSON.stringify(terms), JSON.stringify(vectors));
  }

  /** Returns the object and the rules of each row. */
  oids({ tenant, project }: ProjectPlace): Promise<Pick<ArtifactFacts, "path" | "oid" | "rules">[]> {
    return this.#queries.read(OIDS, tenant, project);
  }

  /** Returns rows with vectors that the store may not have. */
  pending(
    { tenant, project }: ProjectPlace,
    limit: number,
  ): Promise<{ path: string; oid: string; vector: string }[]> {
    return this.#queries.read(PENDING, tenant, project, limit);
  }

  /** Records that the store has vectors. */
  async embedded({ tenant, project }: ProjectPlace, vectors: readonly string[]): Promise<void> {
    await this.#queries.change(EMBEDDED, tenant, project, JSON.stringify(vectors));
  }

  /**
   * Returns the riders of a move that changes artifacts. With `mark`, the index is complete at the target of the move if `indexed` is
   * unchanged (ARTROW-2).
   */
  riders({
    put = [],
    removed = [],
    mark,
    key,
  }: {
    put?: readonly ArtifactFacts[];
    removed?: readonly string[];
    mark?: { rules: string; indexed: string | null };
    key?: string | undefined;
  }): Rider[] {
    const now = this.clock.now();
    return [
      ...jsonBatches(put.map((facts) => JSON.stringify(facts))).map((list): Rider => [PUT, list, now]),
      ...textBatches(removed).map((list): Rider => [REMOVE, list]),
      ...(mark === undefined ? [] : [[MARK, mark.rules, mark.indexed] satisfies Rider]),
      ...(key === undefined
        ? []
        : [[DONE, key, now] satisfies Rider, [FORGET, now - WEEK_MS] satisfies Rider]),
    ];
  }
}

/** Returns the place, the ends of the range of paths, and the types as JSON. */
function rangeOf(
  { tenant, project }: ProjectPlace,
  { path, types }: ArtifactFilter,
): [tenant: string, project: string, from: string, to: string, types: string | null] {
  const folder = path?.replace(/\/+$/, "");
  // "0" follows "/".
  const range: [string, string] = folder === undefined ? ["", AFTER_ALL] : [`${folder}/`, `${folder}0`];
  return [tenant, project, ...range, types === undefined ? null : JSON.stringify(types)];
}
