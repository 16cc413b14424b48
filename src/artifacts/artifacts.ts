/**
 * The artifacts of projects: text files on the default branch of the repository `artifacts`, with an index in D1 and vectors.
 *
 * ARTIFACT-1  A write is one commit, and its row is in the transaction that moves the branch. A conflict with another writer repeats the write.
 * ARTIFACT-2  A write with the key and the input of an earlier write returns the version of the earlier write, and changes nothing. With
 *             another input it is another write.
 * ARTIFACT-3  A vector follows the commit. If a crash comes between, the next write or search makes the vector.
 * ARTIFACT-4  Commits of other writers, such as an imported bundle, make the index stale. The next list or search compares the files with the
 *             rows, and replaces the rows of changed files.
 * ARTIFACT-5  Reads come from the repository, so they never depend on the index.
 */
import {
  type ArtifactFacts,
  type ArtifactFilter,
  type ArtifactRow,
  type ArtifactsState,
  type D1Artifacts,
  MAX_RANKED,
  type ProjectPlace,
} from "../d1/artifacts.ts";
import { ARTIFACTS, type RepositoryAddress, type Rider } from "../d1/repositories.ts";
import { decodeText, encode, sha1, toHex } from "../git/bytes.ts";
import { GitRepository } from "../git/git-repository.ts";
import { HEADS } from "../git/import-moves.ts";
import { type Identity, oidOf } from "../git/objects.ts";
import { pathProblem } from "../git/path-problem.ts";
import type { GitPorts } from "../git/stored-packs.ts";
import type { TreeFile } from "../git/trees.ts";
import type { Clock } from "../ports/clock.ts";
import {
  ARTIFACT_INPUTS,
  type ArtifactKind,
  type ArtifactSummary,
  type ArtifactView,
  MAX_ARTIFACT_BYTES,
  type WrittenArtifact,
} from "../protocol/artifacts.ts";
import { defined } from "../shared/defined.ts";
import { conflict, type DramatisError, hasCode, invalid, notFound, tooLarge } from "../shared/errors.ts";
import type { JsonObject } from "../shared/json.ts";
import { DEFAULT_PAGE_SIZE, type Page, pageOf } from "../shared/page.ts";
import { shorten } from "../shared/text.ts";
import { toIso } from "../shared/time.ts";
import { validate } from "../shared/validation.ts";
import { KNOWN_ARTIFACTS, knowledgeNote } from "./knowledge.ts";
import { ranked, searchTerms } from "./search.ts";
import type { ArtifactTypes } from "./types.ts";
import { type ArtifactVectors, VECTORS_MS } from "./vectors.ts";

export interface ArtifactsPorts {
  git: GitPorts;
  index: D1Artifacts;
  types: ArtifactTypes;
  /** Absent if the deployment has no vectors. */
  vectors?: ArtifactVectors;
  clock: Pick<Clock, "now">;
}

/** The author of a write. A repeated write has the same key. */
export interface ArtifactWriter {
  author: Identity;
  key?: string;
}

/** The input of an operation, without the project. */
type InputOf<Kind extends ArtifactKind> = Omit<(typeof ARTIFACT_INPUTS)[Kind]["_zod"]["output"], "project">;

/** Attempts to commit to a branch that other writers move. */
const ATTEMPTS = 20;
const DEFAULT_FOUND = 10;
/** Files of one repair of the index, and of one of its transactions. The next repair continues. */
const [REPAIRED, REPAIRED_AT_ONCE] = [2_000, 100];
const SYMBOLIC_LINK = "120000";

export class Artifacts {
  constructor(private readonly ports: ArtifactsPorts) {}

  /** Runs an operation of a tool. Throws `INVALID_INPUT`, `NOT_FOUND`, `CONFLICT` and `TOO_LARGE`. */
  async perform(
    place: ProjectPlace,
    kind: ArtifactKind,
    input: JsonObject,
    writer: ArtifactWriter,
  ): Promise<JsonObject> {
    switch (kind) {
      case "artifact.read":
        return this.read(place, validate(ARTIFACT_INPUTS[kind], input));
      case "artifact.list": {
        const { items, nextCursor } = await this.list(place, validate(ARTIFACT_INPUTS[kind], input));
        return { artifacts: items, ...defined({ nextCursor }) };
      }
      case "artifact.search":
        return { artifacts: await this.search(place, validate(ARTIFACT_INPUTS[kind], input)) };
      case "artifact.write":
        return this.write(place, validate(ARTIFACT_INPUTS[kind], input), writer);
      case "artifact.delete":
        return {
          ...(await this.delete(place, validate(ARTIFACT_INPUTS[kind], input), writer)),
          deleted: true,
        };
      default:
        return kind satisfies never;
    }
  }

  /** Reads an artifact, by default its newest version. Throws `NOT_FOUND`. */
  async read(place: ProjectPlace, { path, version }: InputOf<"artifact.read">): Promise<ArtifactView> {
    const commit = version ?? (await this.ports.index.state(place)).head;
    const git = this.#git(place);
    const file = commit === null ? null : await git.file(commit, path).catch(unknownVersion(version));
    if (commit === null || file === null || file.mode === SYMBOLIC_LINK) throw noArtifact(path);
    const bytes = await git.blob(file.oid);
    const content = bytes.length > MAX_ARTIFACT_BYTES ? undefined : decodeText(bytes);
    if (content === undefined) {
      const message = `"${path}" is not a text of at most ${MAX_ARTIFACT_BYTES} bytes. Read it with git.`;
      throw invalid(message);
    }
    const type = this.ports.types.fitting(path, content)?.id;
    return { path, version: commit, ...defined({ type }), content };
  }

  async list(
    place: ProjectPlace,
    { path, type, limit = DEFAULT_PAGE_SIZE, cursor }: InputOf<"artifact.list">,
  ): Promise<Page<ArtifactSummary>> {
    await this.refresh(place);
    const rows = await this.ports.index.list(place, this.#filterOf(path, type), limit + 1, cursor);
    return pageOf(rows, limit, summaryOf, (row) => row.path);
  }

  /** Finds artifacts by words, and by meaning if the deployment has vectors, the best first. */
  async search(
    place: ProjectPlace,
    { query, path, type, limit = DEFAULT_FOUND }: InputOf<"artifact.search">,
  ): Promise<ArtifactSummary[]> {
    const { index, vectors, clock } = this.ports;
    const since = await this.refresh(place);
    const work = { ...place, since, until: clock.now() + VECTORS_MS };
    await vectors?.complete(work, this.#git(place));
    const cosines = (await vectors?.nearest(work, query)) ?? new Map<string, number>();
    const rows = await index.search(place, this.#filterOf(path, type), searchTerms(query), [
      ...cosines.keys(),
    ]);
    const found = new Set(rows.map(({ vector }) => vector));
    const unknown = [...cosines.keys()].filter((id) => !found.has(id));
    const isWhole = path === undefined && type === undefined && rows.length < MAX_RANKED;
    if (isWhole && unknown.length > 0) await vectors?.remove(work, unknown);
    return ranked(query, rows, cosines, { limit, now: clock.now() }).map(summaryOf);
  }

  /** Writes an artifact (ARTIFACT-1, ARTIFACT-2). Throws `CONFLICT` if it has changed since `ifVersion`. */
  async write(
    place: ProjectPlace,
    { path, content, type: wanted, ifVersion }: InputOf<"artifact.write">,
    writer: ArtifactWriter,
  ): Promise<WrittenArtifact> {
    const bytes = encode(content);
    if (bytes.length > MAX_ARTIFACT_BYTES) {
      const message = `An artifact has at most ${MAX_ARTIFACT_BYTES} bytes. "${path}" has ${bytes.length}. Split it.`;
      throw tooLarge(message);
    }
    if (decodeText(bytes) !== content) {
      const message = `The content of "${path}" must be well-formed Unicode without NUL characters.`;
      throw invalid(message);
    }
    const type = this.ports.types.checked(path, content, wanted);
    const { types, git } = this.ports;
    const facts = types.facts(path, oidOf({ type: "blob", content: bytes }), bytes, git.ids.ulid());
    const version = await this.#change(place, { path, facts, bytes, ifVersion }, writer);
    return { path, version, ...defined({ type: type?.id }) };
  }

  /** Deletes an artifact. Throws `NOT_FOUND` without it, and `CONFLICT` as `write`. */
  async delete(
    place: ProjectPlace,
    { path, ifVersion }: InputOf<"artifact.delete">,
    writer: ArtifactWriter,
  ): Promise<WrittenArtifact> {
    return { path, version: await this.#change(place, { path, ifVersion }, writer) };
  }

  /** Returns the note about the artifacts of a project for a model; `undefined` without artifacts. One query. */
  async knowledge(place: ProjectPlace, types?: readonly string[]): Promise<string | undefined> {
    const rows = await this.ports.index.list(place, { types }, KNOWN_ARTIFACTS + 1);
    return knowledgeNote(rows.map(summaryOf), this.ports.types.line);
  }

  /** Brings the index up to date with the newest commit (ARTIFACT-4). Returns the time of the repository's creation. */
  async refresh(place: ProjectPlace): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      const state = await this.ports.index.state(place);
      if (state.head === null || state.indexed === this.#markOf(state.head)) return state.since;
      if ((await this.#repair(place, state, state.head)) || attempt === ATTEMPTS) return state.since;
    }
  }

  /** Replaces the rows of files that have changed, at most `REPAIRED`. Returns `false` if another writer moved the branch. */
  async #repair(place: ProjectPlace, { branch, indexed }: ArtifactsState, head: string): Promise<boolean> {
    const { index, types } = this.ports;
    const git = this.#git(place);
    const files = [...(await git.tree(head))].filter(([, { mode }]) => mode !== SYMBOLIC_LINK);
    const rows = new Map((await index.oids(place)).map((row) => [row.path, row]));
    const changed = files.filter(([path, { oid }]) => {
      const row = rows.get(path);
      rows.delete(path);
      return row?.oid !== oid || row.rules !== types.rules;
    });
    for (let at = 0; at < Math.max(1, Math.min(changed.length, REPAIRED)); at += REPAIRED_AT_ONCE) {
      const put: ArtifactFacts[] = [];
      for (const [path, { oid }] of changed.slice(at, at + REPAIRED_AT_ONCE))
        put.push(types.facts(path, oid, await git.blob(oid), this.ports.git.ids.ulid()));
      const isLast = at + REPAIRED_AT_ONCE >= changed.length;
      const mark = isLast ? { mark: { rules: types.rules, indexed } } : {};
      const riders = index.riders({ put, removed: at === 0 ? [...rows.keys()] : [], ...mark });
      if ((await this.#ride(place, HEADS + branch, head, riders)) === "moved") return false;
    }
    return true;
  }

  /** Commits a change of one file: its facts and bytes, or neither to delete it. Returns the version. */
  async #change(place: ProjectPlace, change: FileChange, { author, key }: ArtifactWriter): Promise<string> {
    const { path, facts, bytes } = change;
    const problem = pathProblem(path);
    if (problem !== undefined) throw invalid(`${JSON.stringify(path)} ${problem}`);
    const { index, types, vectors, clock } = this.ports;
    // A key may have the id of a conversation, which the rows must not keep.
    const hashed = key && toHex(sha1(encode(JSON.stringify([key, path, facts?.oid, change.ifVersion]))));
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { head, branch, since, indexed, done, vector } = await index.state(place, { key: hashed, path });
      if (done !== null) return done;
      const git = this.#git({ ...place, since });
      const file = head === null ? null : await git.file(head, path);
      await checkVersion(git, change, file);
      if (file === null && bytes === undefined) throw noArtifact(path);
      const isSame = head !== null && file?.oid === facts?.oid && file?.mode !== SYMBOLIC_LINK;
      const riders = index.riders({
        ...(isSame ? {} : facts === undefined ? { removed: [path] } : { put: [facts] }),
        ...(indexed === this.#markOf(head) ? { mark: { rules: types.rules, indexed } } : {}),
        key: hashed,
      });
      const commit = {
        parents: head === null ? [] : [head],
        changes: new Map([[path, bytes === undefined ? null : { content: bytes }]]),
        message: `${bytes === undefined ? "Delete" : "Write"} ${path}`,
        ...{ author, at: clock.now() },
      };
      const made = isSame
        ? await this.#ride(place, HEADS + branch, head, riders)
        : await git.commit(branch, head, commit, riders);
      if (made === "moved") continue;
      const work = { ...place, since, until: clock.now() + VECTORS_MS };
      if (vector !== null && !isSame) await vectors?.remove(work, [vector]);
      await vectors?.complete(work, git);
      return made.oid;
    }
    throw conflict("Other writers change the artifacts. Try again in a moment.", {
      retriable: true,
    });
  }

  /** Runs riders if a reference is still at a commit. */
  async #ride(
    place: ProjectPlace,
    name: string,
    oid: string,
    riders: readonly Rider[],
  ): Promise<{ oid: string } | "moved"> {
    const move = { name, from: oid, to: oid };
    return (await this.ports.git.rows.move(addressOf(place), [move], { riders })) ? { oid } : "moved";
  }

  /** Throws `INVALID_INPUT` for an unknown type. */
  #filterOf(path: string | undefined, type: string | undefined): ArtifactFilter {
    return { path, types: type === undefined ? undefined : [this.ports.types.named(type).id] };
  }

  /** Returns `indexed` of a repository with a complete index of a commit. */
  #markOf(commit: string | null): string | null {
    return commit === null ? null : `${commit} ${this.ports.types.rules}`;
  }

  #git(place: Omit<RepositoryAddress, "repo">): GitRepository {
    return new GitRepository(this.ports.git, addressOf(place));
  }
}

/** A change of a file. Without content it is deleted. */
interface FileChange {
  path: string;
  facts?: ArtifactFacts;
  bytes?: Uint8Array;
  ifVersion?: string | undefined;
}

/** Throws `CONFLICT` if a file is another than in the version `ifVersion`. */
async function checkVersion(
  git: GitRepository,
  { path, ifVersion }: FileChange,
  file: TreeFile | null,
): Promise<void> {
  if (ifVersion === undefined) return;
  const before = await git.file(ifVersion, path).catch(() => undefined);
  if (before !== undefined && before?.oid === file?.oid) return;
  throw conflict(
    `"${path}" is not as in version ${ifVersion}. Read it, apply your change to the new content, and write with its version.`,
  );
}

function unknownVersion(version: string | undefined): (error: unknown) => never {
  return (error) => {
    const isUnknown = hasCode(error, "NOT_FOUND", "INVALID_INPUT");
    if (version === undefined || !isUnknown) throw error;
    const message = `The artifacts have no version ${version}. Leave out \`version\` to read the newest.`;
    throw notFound(message);
  };
}

function addressOf(place: Omit<RepositoryAddress, "repo">): RepositoryAddress {
  return { ...place, repo: ARTIFACTS };
}

function summaryOf({ path, type, bytes, title, fields, updated_at }: ArtifactRow): ArtifactSummary {
  return {
    path,
    ...(type === null ? {} : { type }),
    title,
    ...(fields === null ? {} : { fields: JSON.parse(fields) }),
    bytes,
    updatedAt: toIso(updated_at),
  };
}

function noArtifact(path: string): DramatisError {
  return notFound(
    `There is no artifact ${JSON.stringify(shorten(path, 200))}. List or search the artifacts for its path.`,
  );
}
