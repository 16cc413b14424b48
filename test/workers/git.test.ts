/** Repositories on D1 and R2. */
import { env } from "cloudflare:workers";
import { ulid } from "ulid";
import { describe, expect, test } from "vitest";
import { D1Repositories } from "../../src/d1/repositories.ts";
import { declareProjects } from "../../src/git/declared-projects.ts";
import { GitRepository } from "../../src/git/git-repository.ts";
import { Projects } from "../../src/git/projects.ts";
import { systemIds } from "../../src/ports/system.ts";
import { R2ObjectStore } from "../../src/ports/workers/r2-object-store.ts";

const author = { name: "Ada", email: "ada@example.com" };
const rows = new D1Repositories(env.DB);
const open = (project: string, repo = "web") =>
  new GitRepository(
    { rows, objects: new R2ObjectStore(env.BUCKET), ids: systemIds },
    { tenant: "git", project, repo },
  );

async function createProject(id: string): Promise<void> {
  await rows.createProject("git", { id, repositories: [{ id: "web", defaultBranch: "main" }] });
}

async function write(repository: GitRepository, path: string, content: Uint8Array): Promise<string> {
  const head = await repository.head("main");
  const made = await repository.commit("main", head, {
    parents: head === null ? [] : [head],
    changes: new Map([[path, { content }]]),
    message: `Write ${path}`,
    author,
    at: Date.now(),
  });
  if (made === "moved") throw new Error("The branch has moved.");
  return made.oid;
}

describe("declared projects", () => {
  const projects = new Projects({ rows, objects: new R2ObjectStore(env.BUCKET), ids: systemIds });
  const files = { "README.md": "# First\n" };

  test("DECLARED-1 create what is missing, at once and again, and change no commit", async () => {
    const declared = { id: "declared", tenant: "git", repositories: [{ id: "web", files }, { id: "empty" }] };
    await Promise.all([1, 2, 3].map(() => declareProjects(projects, [declared], 1_000)));
    const { repositories = [] } = (await rows.project("git", "declared")) ?? {};
    expect(repositories.map(({ id }) => id).sort()).toEqual(["artifacts", "empty", "web"]);
    const first = await open("declared").head("main");
    const second = await write(open("declared"), "README.md", new TextEncoder().encode("# Second\n"));
    const more = { ...declared, repositories: [...declared.repositories, { id: "more", files }] };
    await declareProjects(projects, [more], 2_000);
    expect(await open("declared").log(second, 9)).toMatchObject([{ oid: second }, { oid: first }]);
    expect(await open("declared", "more").head("main")).toEqual(expect.any(String));
  });

  test("DECLARED-1 an invalid declaration says what to change", async () => {
    const invalid = [{ id: "../x", tenant: "git" }];
    await expect(declareProjects(projects, invalid, 1_000)).rejects.toMatchObject({ code: "INVALID_INPUT" });
  });
});

describe("a repository on Workers", () => {
  test("GIT-5 deletes packs that a crash has left, a day later", async () => {
    await createProject("crashed");
    const left = (at: number) => `git/git/crashed/web/pack-${ulid(at).toLowerCase()}.pack`;
    const [old, young] = [left(Date.now() - 25 * 3_600_000), left(Date.now())];
    for (const key of [old, young]) await env.BUCKET.put(key, "unused");
    for (let round = 0; round < 17; round++)
      await write(open("crashed"), `${round}`, new TextEncoder().encode(`${round}`));
    expect(await env.BUCKET.head(old)).toBeNull();
    expect(await env.BUCKET.head(young)).not.toBeNull();
    expect((await open("crashed").tree((await open("crashed").head("main")) ?? "")).size).toBe(17);
  });

  test("GIT-4 stores commits, reads them in another instance, and moves them in a bundle", async () => {
    await createProject("one");
    const repository = open("one");
    const commits: string[] = [];
    for (let round = 0; round < 20; round++) {
      commits.push(await write(repository, `a/file${round}.txt`, new TextEncoder().encode(`${round}\n`)));
    }
    // It has several blocks, and no compression.
    const large = crypto.getRandomValues(new Uint8Array(60_000));
    const content = Uint8Array.from(
      { length: 3_000_000 },
      (_, at) => (large[at % 60_000] ?? 0) ^ (at / 60_000),
    );
    const last = await write(repository, "large.bin", content);
    expect((await rows.packs({ tenant: "git", project: "one", repo: "web" })).length).toBeLessThanOrEqual(16);
    const reader = open("one");
    expect((await reader.log(last, 99)).map(({ oid }) => oid)).toEqual([last, ...commits.toReversed()]);
    const files = await reader.tree(last);
    expect(files.size).toBe(21);
    expect(await reader.blob(files.get("large.bin")?.oid ?? "")).toEqual(content);

    await createProject("two");
    const copy = open("two");
    await copy.importBundle(await reader.exportBundle());
    expect(await copy.branches()).toEqual([{ name: "main", oid: last }]);
    expect(await copy.tree(last)).toEqual(files);
    expect(await open("other").branches()).toEqual([]);
  });

  test("GIT-2 of commits that start at one head, one wins", async () => {
    await createProject("race");
    const head = await write(open("race"), "a.txt", new Uint8Array(1));
    const attempts = Array.from({ length: 5 }, (_, index) =>
      open("race").commit("main", head, {
        parents: [head],
        changes: new Map([["a.txt", { content: Uint8Array.of(index) }]]),
        message: "Write",
        author,
        at: Date.now(),
      }),
    );
    const results = await Promise.all(attempts);
    const [winner, ...others] = results.filter((result) => result !== "moved");
    expect(others).toEqual([]);
    expect(await open("race").head("main")).toBe(winner?.oid);
  });

  test("a repository without a row takes no commit", async () => {
    const input = { parents: [], changes: new Map(), message: "Begin", author, at: 0 };
    expect(await open("nowhere").commit("main", null, input)).toBe("moved");
    expect(await open("nowhere").head("main")).toBeNull();
  });
});
