/** The index and the vectors of artifacts on Node's SQLite, with a clock and stores that tests steer. */
import { beforeEach, expect, test, vi } from "vitest";
import { Artifacts } from "../../src/artifacts/artifacts.ts";
import { ArtifactTypes } from "../../src/artifacts/types.ts";
import { ArtifactVectors } from "../../src/artifacts/vectors.ts";
import { type ArtifactFacts, D1Artifacts } from "../../src/d1/artifacts.ts";
import { ARTIFACTS } from "../../src/d1/repositories.ts";
import { GitRepository } from "../../src/git/git-repository.ts";
import type { Embedder } from "../../src/memory/embedders/embedder.ts";
import type { ArtifactType } from "../../src/protocol/artifacts.ts";
import { ADDRESS, AUTHOR, changes, gitWorld } from "../support/git-worlds.ts";
import { LateVectors } from "../support/late-vectors.ts";
import { wordVector } from "../support/test-embedders.ts";

const { tenant, project } = ADDRESS;
const PLACE = { tenant, project };
const REPOSITORY = { ...PLACE, repo: ARTIFACTS };
/** Two words for one colour have one vector. */
const vectorOf = (text: string) => wordVector(text.replace("navy", "azure"), 8);
const EMBEDDER: Embedder = {
  ...{ id: "words", dimensions: 8, isLocal: true },
  embed: async (texts) => texts.map(vectorOf),
  embedQuery: async (text) => vectorOf(text),
};
const writer = (key?: string) => ({ author: AUTHOR, ...(key === undefined ? {} : { key }) });
const paths = (found: readonly { path: string }[]) => found.map(({ path }) => path);

/** Returns the project of `gitWorld` with its artifacts. `service` opens the artifacts again, as a deployment with other types. */
async function artifactWorld() {
  const { clock, database, rows, objects, ids } = await gitWorld();
  const store = new LateVectors(8, clock);
  const index = new D1Artifacts(database, clock);
  const pauses = new Map<string, number>();
  const ports = { rows, objects, ids };
  const service = (given: readonly ArtifactType[] = []) => {
    const types = new ArtifactTypes(given, "words");
    const shared = { index, types, clock };
    const vectors = new ArtifactVectors({ ...shared, store, pauses, embedder: async () => EMBEDDER });
    return new Artifacts({ ...shared, git: ports, vectors });
  };
  const requests = () => store.queries + store.upserts.length + store.deletions.length;
  /** Runs work that waits for the store, and ends each wait. Returns the time that the work took. */
  const waited = async (work: () => Promise<unknown>) => {
    const [start, known] = [clock.now(), requests()];
    let isOver = false;
    const running = work().finally(() => {
      isOver = true;
    });
    for (let waits = 1; !isOver; waits++) {
      await vi.waitFor(() => expect(isOver || requests() === known + waits).toBe(true));
      if (!isOver) await clock.runNext();
    }
    await running;
    return clock.now() - start;
  };
  return {
    ...{ clock, database, rows, store, index, service, requests, waited, artifacts: service() },
    git: new GitRepository(ports, REPOSITORY),
  };
}

/** Commits files as another writer than the artifacts. */
async function elsewhere(git: GitRepository, files: Record<string, string>): Promise<void> {
  const head = (await git.head("main")) ?? "";
  const input = { parents: [head], changes: changes(files), message: "Elsewhere", author: AUTHOR, at: 9_000 };
  expect(await git.commit("main", head, input)).not.toBe("moved");
}

beforeEach(() => void vi.spyOn(console, "warn").mockReturnValue(undefined));

test("ARTVEC-1 a late deletion of a vector spares the same content that came back", async () => {
  const { clock, store, artifacts, git } = await artifactWorld();
  const write = (content: string) => artifacts.write(PLACE, { path: "a.md", content }, writer());
  await write("azure");
  store.mood = "late";
  const second = write("crimson");
  await vi.waitFor(() => expect(store.deletions).toHaveLength(1));
  store.mood = "well";
  await write("azure");
  store.comeLate();
  expect(paths(await artifacts.search(PLACE, { query: "navy" }))).toEqual(["a.md"]);
  // Its deletion is out of time.
  await clock.runNext();
  await second;
  await clock.advance(60_000);
  expect(paths(await artifacts.search(PLACE, { query: "navy" }))).toEqual(["a.md"]);
  // A repeated content keeps its vector.
  const known = store.upserts.length;
  await write("azure");
  expect(store.upserts).toHaveLength(known);
  // A commit of another writer leaves the row of the content that the next write brings back.
  await elsewhere(git, { "a.md": "crimson" });
  await write("azure");
  expect(paths(await artifacts.search(PLACE, { query: "navy" }))).toEqual(["a.md"]);
  await artifacts.delete(PLACE, { path: "a.md" }, writer());
  expect(store.ids()).toEqual([]);
});

test("ARTVEC-4 a silent store delays one operation of a tenant by one time limit, and the next operations not at all", async () => {
  const { clock, rows, store, service, artifacts, requests, waited } = await artifactWorld();
  const write = (path: string, content: string, by = artifacts) =>
    by.write(PLACE, { path, content }, writer());
  await write("a.md", "azure");
  store.mood = "late";
  store.lateMs = 3_600_000;
  expect(await waited(() => write("a.md", "crimson"))).toBe(10_000);
  const before = requests();
  for (const each of [artifacts, service()]) {
    await write("b.md", "emerald", each);
    expect(paths(await each.search(PLACE, { query: "emerald" }))).toEqual(["b.md"]);
  }
  expect(requests()).toBe(before);
  const other = { tenant: "globex", project };
  await rows.createProject(other.tenant, { id: project, repositories: [] });
  expect(await waited(() => artifacts.write(other, { path: "a.md", content: "azure" }, writer()))).toBe(
    10_000,
  );
  await clock.advance(60_000);
  expect(await waited(() => artifacts.search(PLACE, { query: "azure" }))).toBe(10_000);
  // A slow answer leaves less time for the other requests of the operation.
  await clock.advance(60_000);
  store.mood = "well";
  await write("c.md", "navy");
  const remove = store.delete.bind(store);
  store.delete = async (...args) => {
    await remove(...args);
    store.mood = "late";
    await clock.sleep(9_000);
  };
  expect(await waited(() => write("c.md", "scarlet"))).toBe(10_000);
  store.mood = "well";
  store.delete = remove;
  await clock.advance(60_000);
  expect(paths(await artifacts.search(PLACE, { query: "scarlet" }))).toEqual(["c.md"]);
});

test("ARTIFACT-2 a key of an earlier write with another input is another write", async () => {
  const { artifacts } = await artifactWorld();
  const first = await artifacts.write(PLACE, { path: "a.md", content: "One." }, writer("op_1"));
  const other = await artifacts.write(PLACE, { path: "b.md", content: "One." }, writer("op_1"));
  expect(other.version).not.toBe(first.version);
  const second = await artifacts.write(PLACE, { path: "a.md", content: "Two." }, writer("op_1"));
  expect(paths((await artifacts.list(PLACE, {})).items)).toEqual(["a.md", "b.md"]);
  expect(await artifacts.read(PLACE, { path: "a.md" })).toMatchObject({ content: "Two." });
  expect(await artifacts.write(PLACE, { path: "a.md", content: "One." }, writer("op_1"))).toEqual(first);
  expect(await artifacts.read(PLACE, { path: "a.md" })).toMatchObject({ content: "Two." });
  const guarded = { path: "a.md", content: "One.", ifVersion: first.version };
  await expect(artifacts.write(PLACE, guarded, writer("op_1"))).rejects.toMatchObject({ code: "CONFLICT" });
  const input = { path: "a.md", ifVersion: second.version };
  const removed = await artifacts.delete(PLACE, input, writer("op_1"));
  expect(await artifacts.delete(PLACE, input, writer("op_1"))).toEqual(removed);
  expect(paths((await artifacts.list(PLACE, {})).items)).toEqual(["b.md"]);
});

test("ARTROW-2 a stale index is never marked as complete, also if another deployment replaces its rows during a write or a repair", async () => {
  const { database, service, git } = await artifactWorld();
  const [old, other] = ["old", "other"].map((id) => service([{ id, pathPattern: "**" }]));
  if (old === undefined || other === undefined) return expect.fail();
  const typesOf = async (by: Artifacts) =>
    (await by.list(PLACE, {})).items.map(({ path, type }) => [path, type]);
  const meanwhile = (act: () => Promise<unknown>) => {
    const { batch } = database;
    database.batch = async (statements) => {
      database.batch = batch;
      await act();
      return batch(statements as never) as never;
    };
  };
  await old.write(PLACE, { path: "a.md", content: "azure" }, writer());
  meanwhile(() => typesOf(other));
  await old.write(PLACE, { path: "b.md", content: "navy" }, writer());
  expect(await typesOf(old)).toEqual([
    ["a.md", "old"],
    ["b.md", "old"],
  ]);
  await elsewhere(git, { "c.md": "green" });
  meanwhile(() => typesOf(other));
  await typesOf(old);
  expect(await typesOf(old)).toEqual([
    ["a.md", "old"],
    ["b.md", "old"],
    ["c.md", "old"],
  ]);
});

test("ARTIFACT-4 the index is repaired after the deletion of many artifacts with long paths", async () => {
  const { rows, index, artifacts, git } = await artifactWorld();
  const { version } = await artifacts.write(PLACE, { path: "a.md", content: "azure" }, writer());
  const facts: Omit<ArtifactFacts, "path"> = {
    ...{
      oid: "0".repeat(40),
      rules: "r",
      type: null,
      bytes: 1,
      title: "",
      fields: null,
      vector: null,
      words: " ",
    },
  };
  const folder = `${"x".repeat(240)}/`.repeat(4);
  const put = Array.from({ length: 2_500 }, (_, at) => ({ ...facts, path: `${folder}${at}` }));
  const stay = { name: "refs/heads/main", from: version, to: version };
  expect(await rows.move(REPOSITORY, [stay], { riders: index.riders({ put }) })).toBe(true);
  expect(await index.oids(PLACE)).toHaveLength(2_501);
  await elsewhere(git, { "b.md": "navy" });
  expect(paths((await artifacts.list(PLACE, {})).items)).toEqual(["a.md", "b.md"]);
});
