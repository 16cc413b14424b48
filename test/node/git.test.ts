/** Repositories, read and written by the `git` of this machine. */
import { globSync } from "node:fs";
import { join, posix } from "node:path";
import { deflateSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { encodeBundle } from "../../src/git/bundle.ts";
import { concat, encode, fromHex, sha1, toHex } from "../../src/git/bytes.ts";
import { BoundedCache } from "../../src/git/caches.ts";
import { encodeDelta, sharedEnds } from "../../src/git/deltas.ts";
import type { GitRepository } from "../../src/git/git-repository.ts";
import { mergeBase } from "../../src/git/history.ts";
import { NewObjects, ObjectDatabase } from "../../src/git/object-database.ts";
import { encodeCommit, encodeTree, type ObjectType, oidOf, type TreeEntry } from "../../src/git/objects.ts";
import { indexPack } from "../../src/git/pack.ts";
import { encodeIndex, PackIndex } from "../../src/git/pack-index.ts";
import { joinPacks, writePack } from "../../src/git/pack-writer.ts";
import { pathProblem } from "../../src/git/path-problem.ts";
import type { Change } from "../../src/git/trees.ts";
import { ADDRESS, AUTHOR, changes, gitFolder, gitWorld } from "../support/git-worlds.ts";

const AT = Date.UTC(2026, 0, 2, 3, 4, 5);

async function commit(
  repository: GitRepository,
  files: Record<string, string | null>,
  { branch = "main", at = AT, message = "Change files" } = {},
): Promise<string> {
  const head = await repository.head(branch);
  const made = await repository.commit(branch, head, {
    parents: head === null ? [] : [head],
    changes: changes(files),
    message,
    author: AUTHOR,
    at,
  });
  if (made === "moved") throw new Error("The branch has moved.");
  return made.oid;
}

async function texts(repository: GitRepository, oid: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [path, { oid: blob }] of await repository.tree(oid)) {
    found[path] = new TextDecoder().decode(await repository.blob(blob));
  }
  return found;
}

/** Returns the longest chain of deltas in the output of `git verify-pack`. */
function chainsOf(output: string): number {
  return Math.max(0, ...[...output.matchAll(/^chain length = (\d+)/gm)].map(([, length]) => Number(length)));
}

/** Clones the repository with `git`, and checks it. */
async function cloned(repository: GitRepository) {
  const folder = gitFolder();
  const bundle = folder.write("all.bundle", await repository.exportBundle());
  folder.git("-c", "transfer.fsckObjects=true", "clone", "--quiet", bundle, "clone");
  const git = (...args: string[]) => folder.git("-C", "clone", ...args);
  expect(git("fsck", "--strict", "--full")).toBe("");
  const read = (name: string) => folder.read(join("clone", name)).toString();
  return { git, read, path: folder.path, [Symbol.dispose]: folder[Symbol.dispose] };
}

describe("a path", () => {
  test("PATH-1 stays below the root, outside of .git, on every file system", () => {
    const refused = [
      "",
      ".",
      "..",
      "a/../b",
      "a/..",
      "/a",
      "a//b",
      "a/",
      "./a",
      "C:/a",
      "c:a",
      "a\\b",
      "a\u0000",
      "a\nb",
    ];
    const git = [
      ".git",
      ".GIT/config",
      "a/.Git",
      ".git.",
      ".git ",
      ".git . .",
      "git~1",
      "GIT~1/x",
      ".g\u200cit",
      ".git::$DATA",
    ];
    for (const path of [...refused, ...git, "\ud800", "a".repeat(256), "a/".repeat(600)]) {
      expect([path, pathProblem(path)]).toEqual([path, expect.any(String)]);
    }
    for (const path of [
      "a",
      ".gitignore",
      ".github/x.yml",
      "a b/é🙂.txt",
      "...",
      "a..b",
      "git",
      ".gitx",
      "-a",
      "ab:c",
    ]) {
      expect([path, pathProblem(path)]).toEqual([path, undefined]);
    }
    const segment = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("..", ".", "", ".git", "a"));
    fc.assert(
      fc.property(
        fc.array(segment).map((segments) => segments.join("/")),
        (path) => {
          if (pathProblem(path) !== undefined) return;
          const root = "/root/of/files";
          expect(posix.normalize(posix.join(root, path))).toBe(`${root}/${path}`);
          expect(path.toLowerCase().split("/")).not.toContain(".git");
        },
      ),
    );
  });
});

describe("a repository", () => {
  test("is cloned from its bundle by git, with its history, files and modes", async () => {
    const { repository } = await gitWorld();
    await commit(repository, { "README.md": "# Shop\n", "src/a.ts": "a\n", "src/b/c.ts": "c\n" });
    const head = await repository.head("main");
    const script = { content: new TextEncoder().encode("#!/bin/sh\n"), mode: "100755" as const };
    const link = { content: new TextEncoder().encode("src/a.ts"), mode: "120000" as const };
    const made = await repository.commit("main", head, {
      parents: [head ?? ""],
      changes: new Map<string, Change>([
        ["run.sh", script],
        ["link", link],
        ["src/b/c.ts", null],
      ]),
      message: "Add a script\n\nIt runs.",
      author: { name: "Ada <ada>\n", email: "ada@example.com" },
      at: AT + 60_000,
    });
    using clone = await cloned(repository);
    expect(made).toEqual({ oid: clone.git("rev-parse", "HEAD") });
    expect(clone.git("log", "--format=%s|%b|%an|%ae|%aI")).toBe(
      "Add a script|It runs.\n|Ada ada|ada@example.com|2026-01-02T03:05:05+00:00\nChange files||Ada|ada@example.com|2026-01-02T03:04:05+00:00",
    );
    expect(clone.git("ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD")).toBe(
      "100644 README.md\n120000 link\n100755 run.sh\n100644 src/a.ts",
    );
    expect(clone.read("README.md")).toBe("# Shop\n");
    expect(clone.git("status", "--short")).toBe("");
  });

  test("has the objects of a history that git has packed with deltas, and gives the same history back", async () => {
    using folder = gitFolder();
    const { git } = folder;
    git("init", "--quiet", "--initial-branch=trunk");
    for (let round = 0; round < 12; round++) {
      const lines = Array.from({ length: 400 }, (_, line) => `line ${line === round * 30 ? round : line}`);
      folder.write("long.txt", `${lines.join("\n")}\n`);
      folder.write(`file ${round} é.txt`, `${round}\n`);
      git("add", ".");
      git("commit", "--quiet", "--message", `Round ${round}`);
    }
    git("tag", "--annotate", "v1", "--message", "First");
    git("branch", "feature/#1", "HEAD~3");
    git("repack", "-adfq", "--depth=50", "--window=50");
    git("bundle", "create", "--quiet", "all.bundle", "--all");
    const [pack = ""] = globSync(join(folder.path, ".git/objects/pack/*.pack"));
    expect(git("verify-pack", "--verbose", pack)).toMatch(/chain length = [2-9]/);

    const { repository, rows, open } = await gitWorld();
    const { branches } = await repository.importBundle(folder.read("all.bundle"));
    expect(branches.map(({ name }) => name)).toEqual(["feature/#1", "trunk"]);
    expect(await rows.repository(ADDRESS)).toMatchObject({ defaultBranch: "trunk" });
    const head = git("rev-parse", "HEAD");
    expect(await open().head("trunk")).toBe(head);
    expect((await open().log(head, 100)).map(({ oid }) => oid)).toEqual(git("rev-list", "HEAD").split("\n"));
    expect(await texts(open(), git("rev-parse", "HEAD~3"))).toEqual(
      await texts(open(), branches[0]?.oid ?? ""),
    );
    expect((await texts(open(), head))["long.txt"]).toBe(folder.read("long.txt").toString());

    await commit(repository, { "more.txt": "more\n" }, { branch: "trunk" });
    using clone = await cloned(repository);
    expect(clone.git("rev-parse", "HEAD~1", "v1", "origin/feature/#1")).toBe(
      git("rev-parse", "HEAD", "v1", "feature/#1"),
    );
    // A later bundle adds the new commits.
    git("pull", "--quiet", folder.write("now.bundle", await repository.exportBundle()), "trunk");
    folder.write("last.txt", "last\n");
    git("add", ".");
    git("commit", "--quiet", "--message", "Last");
    git("bundle", "create", "--quiet", "later.bundle", "trunk");
    await repository.importBundle(folder.read("later.bundle"));
    expect(await repository.head("trunk")).toBe(git("rev-parse", "HEAD"));
    using again = await cloned(repository);
    expect(again.read("last.txt")).toBe("last\n");
  });

  test("GIT-4 keeps few packs, and each earlier commit stays readable", async () => {
    const { repository, rows, objects, open } = await gitWorld();
    const other = open();
    const commits: string[] = [];
    for (let round = 0; round < 60; round++) {
      const files = { [`dir${round % 5}/file${round % 9}.txt`]: `${round}\n` };
      commits.push(await commit(repository, files, { at: AT + round * 1_000 }));
      if (round === 10) await other.tree(commits[0] ?? "");
    }
    const packs = await rows.packs(ADDRESS);
    expect(packs.length).toBeLessThanOrEqual(16);
    expect((await objects.list("git/", 1_000)).length).toBe(2 * packs.length);
    expect((await repository.log(commits.at(-1) ?? "", 100)).map(({ oid }) => oid)).toEqual(
      commits.toReversed(),
    );
    // It knew packs that were replaced since.
    for (const oid of commits) expect(await other.tree(oid)).toEqual(await open().tree(oid));
    using clone = await cloned(repository);
    expect(clone.git("rev-list", "HEAD").split("\n")).toEqual(commits.toReversed());
  });

  test("PACK-4 stores a folder with many files as deltas, with chains of at most 50", async () => {
    const { repository, rows } = await gitWorld();
    const texts = Array.from({ length: 400 }, (_, n) => `Note ${n} says ${toHex(sha1(encode(`${n}`)))}.\n`);
    for (const [n, text] of texts.entries())
      await commit(repository, { [`notes/${n}.md`]: text }, { at: AT + n * 1_000 });
    const stored = (await rows.packs(ADDRESS)).reduce((sum, { bytes }) => sum + bytes, 0);
    // Whole folders would take 2 MB.
    expect(stored).toBeLessThan(400 * 1_200);
    using clone = await cloned(repository);
    expect(clone.git("ls-tree", "-r", "--name-only", "HEAD").split("\n")).toHaveLength(400);
    expect(Number(clone.git("rev-list", "--count", "HEAD"))).toBe(400);
    const [packed = ""] = globSync("clone/.git/objects/pack/*.pack", { cwd: clone.path });
    const longest = chainsOf(clone.git("verify-pack", "--verbose", join(clone.path, packed)));
    expect(longest).toBeGreaterThan(10);
    expect(longest).toBeLessThanOrEqual(50);
  });

  test("PACK-4 joins packs of any trees, and reads each of them", async () => {
    const name = fc.constantFrom("a", "b", "c", "d", "e").map((start) => start.repeat(30));
    const files = fc.dictionary(
      fc.tuple(name, name).map((names) => names.join("/")),
      fc.option(fc.string(), { nil: null }),
      {
        minKeys: 1,
        maxKeys: 8,
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(files, { minLength: 20, maxLength: 40 }), async (rounds) => {
        const { repository, open } = await gitWorld();
        const commits: [oid: string, tree: unknown][] = [];
        for (const [n, round] of rounds.entries()) {
          const oid = await commit(repository, { n: `${n}`, ...round }, { at: AT + n * 1_000 });
          commits.push([oid, await repository.tree(oid)]);
        }
        const again = open();
        for (const [oid, tree] of commits) expect(await again.tree(oid)).toEqual(tree);
      }),
      { numRuns: 15 },
    );
  });

  test("has the files of a model after any changes, and the trees of git", async () => {
    const name = fc.constantFrom("a", "a.b", "a-b", "b", "B", "é", "🙂", "z");
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
    const change = fc.dictionary(path, fc.option(fc.string(), { nil: null }), { minKeys: 1, maxKeys: 6 });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (rounds) => {
        const { repository } = await gitWorld();
        let model = new Map<string, string>();
        for (const files of rounds) {
          const next = new Map(model);
          for (const [path, text] of Object.entries(files)) {
            if (text === null) next.delete(path);
            else next.set(path, text);
          }
          const paths = [...next.keys()];
          const hasClash = paths.some((one) => paths.some((other) => other.startsWith(`${one}/`)));
          if (hasClash) {
            await expect(commit(repository, files)).rejects.toMatchObject({ code: "INVALID_INPUT" });
            continue;
          }
          model = next;
          const oid = await commit(repository, files);
          expect(await texts(repository, oid)).toEqual(Object.fromEntries(model));
        }
        if (model.size === 0) return;
        using clone = await cloned(repository);
        expect(
          clone.git("-c", "core.quotePath=false", "ls-files", "-z").split("\0").filter(Boolean).sort(),
        ).toEqual([...model.keys()].sort());
      }),
      { numRuns: 15 },
    );
  });

  test("GIT-2 of commits that start at one head, one wins, and the others change nothing", async () => {
    const { repository, rows, open } = await gitWorld();
    const head = await commit(repository, { "a.txt": "a\n" });
    const attempts = Array.from({ length: 6 }, (_, index) =>
      open().commit("main", head, {
        parents: [head],
        changes: changes({ "a.txt": `${index}\n` }),
        message: `Write ${index}`,
        author: AUTHOR,
        at: AT,
      }),
    );
    const results = await Promise.all(attempts);
    const winners = results.filter((result) => result !== "moved");
    expect(winners).toHaveLength(1);
    expect(await open().head("main")).toBe(winners[0]?.oid);
    expect(await rows.packs(ADDRESS)).toHaveLength(2);
    expect(await open().createBranch("main", head)).toBe(false);
    expect(await open().createBranch("topic", head)).toBe(true);
    expect(await open().createBranch("topic", head)).toBe(true);
    await open().deleteBranch("topic");
    expect(await open().branches()).toEqual([{ name: "main", oid: winners[0]?.oid }]);
  });

  test("GIT-1 GIT-3 stays as it was if the writer dies, and a repeated commit succeeds once", async () => {
    const { repository, database, open } = await gitWorld();
    const head = await commit(repository, { "a.txt": "a\n" });
    const input = {
      parents: [head],
      changes: changes({ "b.txt": "b\n" }),
      message: "Add b",
      author: AUTHOR,
      at: AT,
    };
    const batch = database.batch;
    database.batch = () => Promise.reject(new Error("died"));
    await expect(open().commit("main", head, input)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    database.batch = batch;
    expect(await open().head("main")).toBe(head);
    const first = await open().commit("main", head, input);
    const second = await open().commit("main", head, input);
    expect(second).toEqual(first);
    expect(await open().log((await repository.head("main")) ?? "", 9)).toHaveLength(2);
    using clone = await cloned(open());
    expect(clone.read("b.txt")).toBe("b\n");
  });

  describe("a commit that joins packs", () => {
    const file = (n: number) => ({ [`f${n}`]: `${n}\n` });
    const next = (repository: GitRepository, n: number) =>
      commit(repository, file(n), { at: AT + n * 1_000 });

    /** Returns a repository after some commits. `expectWhole` reads all of them from the stores. The 17th commit joins packs. */
    async function withCommits(count: number) {
      const world = await gitWorld();
      const commits: string[] = [];
      while (commits.length < count) commits.push(await next(world.repository, commits.length));
      const expectWhole = async (head: string | null | undefined) => {
        const reader = world.open();
        expect(await reader.head("main")).toBe(head);
        for (const [n, oid] of commits.entries()) {
          const files = Array.from({ length: n + 1 }, (_, at) => file(at));
          expect(await texts(reader, oid)).toEqual(Object.assign({}, ...files));
        }
      };
      return { ...world, commits, expectWhole };
    }

    test.each([
      [1, "pack"],
      [1, "idx"],
      [16, "pack"],
      [16, "idx"],
    ])(
      "GIT-1 moves nothing if it cannot store its objects: after %i commits, without its %s",
      async (count, kind) => {
        const { repository, rows, objects, commits, expectWhole } = await withCommits(count);
        const packs = await rows.packs(ADDRESS);
        const put = objects.put.bind(objects);
        objects.put = async (key, ...content) => {
          if (key.endsWith(kind)) throw new Error("The store is full.");
          return put(key, ...content);
        };
        await expect(next(repository, count)).rejects.toThrow("The store is full.");
        expect(await rows.packs(ADDRESS)).toEqual(packs);
        await expectWhole(commits.at(-1));
      },
    );

    test.each(["fails", "has no answer", "is lost"])(
      "GIT-1 GIT-3 REFS-2 leaves all commits readable if its move %s",
      async (end) => {
        const { repository, rows, database, open, commits, expectWhole } = await withCommits(16);
        const { batch } = database;
        const head = commits.at(-1) ?? "";
        database.batch = async (statements) => {
          database.batch = batch;
          const other = { name: MAIN, from: head, to: commits[3] ?? "" };
          if (end === "is lost") expect(await rows.move(ADDRESS, [other])).toBe(true);
          if (end === "fails") throw new Error("The connection is lost.");
          const results = await batch(statements);
          if (end === "has no answer") throw new Error("The connection is lost.");
          return results as never;
        };
        const input = {
          parents: [head],
          changes: changes(file(16)),
          message: "Change files",
          author: AUTHOR,
          at: AT,
        };
        const made = repository.commit("main", head, input);
        if (end === "is lost") expect(await made).toBe("moved");
        else await expect(made).rejects.toMatchObject({ code: "UNAVAILABLE" });
        const now = await open().head("main");
        if (end === "has no answer") expect(now).not.toBe(head);
        else expect(now).toBe(end === "fails" ? head : commits[3]);
        await expectWhole(now);
        const again = await open().commit("main", end === "has no answer" ? head : now, input);
        expect(again).toEqual({ oid: expect.any(String) });
        await expectWhole(again === "moved" ? null : again.oid);
      },
    );

    test("GIT-5 succeeds if it cannot delete packs, and a later join deletes them", async () => {
      const { repository, rows, objects, clock, commits, expectWhole } = await withCommits(16);
      const stored = () => objects.list("git/", 1_000);
      const [list, remove] = [objects.list.bind(objects), objects.delete.bind(objects)];
      objects.list = () => Promise.reject(new Error("The store is busy."));
      objects.delete = () => Promise.reject(new Error("The store is busy."));
      commits.push(await next(repository, 16));
      Object.assign(objects, { list, delete: remove });
      expect((await rows.packs(ADDRESS)).length).toBeLessThan(16);
      expect(await stored()).toHaveLength(2 * 17);
      await expectWhole(commits.at(-1));
      await clock.advance(25 * 3_600_000);
      while (commits.length < 29) commits.push(await next(repository, commits.length));
      expect(await stored()).toHaveLength(2 * (await rows.packs(ADDRESS)).length);
      await expectWhole(commits.at(-1));
    });
  });

  test("refuses damaged and partial bundles, and other histories, and changes nothing", async () => {
    using folder = gitFolder();
    const { git } = folder;
    git("init", "--quiet", "--initial-branch=main");
    for (const text of ["one", "two", "three"]) {
      folder.write("a.txt", `${text}\n`.repeat(50));
      git("add", ".");
      git("commit", "--quiet", "--message", text);
    }
    git("bundle", "create", "--quiet", "all.bundle", "--all");
    git("bundle", "create", "--quiet", "part.bundle", "HEAD~1..main");
    const bundle = folder.read("all.bundle");
    const { repository, rows, objects } = await gitWorld();
    const refused = async (bytes: Uint8Array, code: string) => {
      await expect(repository.importBundle(bytes)).rejects.toMatchObject({ code });
    };
    await refused(folder.read("part.bundle"), "INVALID_INPUT");
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: bundle.indexOf("PACK"), max: bundle.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, bits) => {
          const bytes = Uint8Array.from(bundle);
          bytes[at] = (bytes[at] ?? 0) ^ bits;
          await expect(repository.importBundle(bytes)).rejects.toMatchObject({
            code: expect.stringMatching(/^(?:INVALID_INPUT|TOO_LARGE|UNSUPPORTED)$/),
          });
          await refused(bytes.subarray(0, at), "INVALID_INPUT");
        },
      ),
      { numRuns: 60 },
    );
    expect(await rows.references(ADDRESS)).toEqual([]);
    expect(await objects.list("git/", 10)).toEqual([]);
    await commit(repository, { "a.txt": "other\n" });
    await refused(bundle, "CONFLICT");
    expect(await repository.log((await repository.head("main")) ?? "", 9)).toHaveLength(1);
  });

  test("refuses unsafe paths, unsafe names in a bundle, and bad branches", async () => {
    const { repository } = await gitWorld();
    for (const path of ["../a", ".git/config", "a\\b", "/a", "a//b"]) {
      await expect(commit(repository, { [path]: "a" })).rejects.toMatchObject({ code: "INVALID_INPUT" });
    }
    for (const branch of ["", "a..b", "a b", "-a", "a.lock", "a/.b", "HEAD", "a~1"]) {
      await expect(commit(repository, { a: "a" }, { branch })).rejects.toMatchObject({
        code: "INVALID_INPUT",
      });
    }
    using folder = gitFolder();
    const { git } = folder;
    git("init", "--quiet", "--initial-branch=main");
    folder.write("a", "a\n");
    const blob = git("hash-object", "-w", "a");
    const tree = folder.pipe(`100644 blob ${blob}\t.GIT\n`, "mktree");
    const oid = git("commit-tree", tree, "-m", "Bad");
    git("update-ref", "refs/heads/main", oid);
    git("bundle", "create", "--quiet", "bad.bundle", "main");
    await expect(repository.importBundle(folder.read("bad.bundle"))).rejects.toThrow(/\.GIT/);
    expect(await repository.branches()).toEqual([]);
  });

  test("GITMERGE-1 GITMERGE-2 merges like git, and returns conflicts as data", async () => {
    const lines = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 9 });
    const written = lines.map((each) => `${each.map((line, at) => `${line}${at}`).join("\n")}\n`);
    const edited = fc
      .array(fc.tuple(fc.nat(5), fc.constantFrom("", "d", "e", "d\ne")), { minLength: 1, maxLength: 2 })
      .map((edits) => {
        const changed = new Map(edits);
        return ["a0", "b1", "c2", "a3", "b4", "c5"]
          .map((line, at) => (changed.get(at) ?? line).replaceAll(/^([de])$/gm, `$1${at}`))
          .map((line) => (line === "" ? "" : `${line}\n`))
          .join("");
      });
    const text = fc.oneof(written, { arbitrary: edited, weight: 3 });
    const files = fc.dictionary(fc.constantFrom("x", "y", "d/z"), fc.option(text, { nil: null }), {
      minKeys: 1,
    });
    const start = { x: "a0\nb1\nc2\na3\nb4\nc5\n", y: "y\n", "d/z": "z\n", keep: "k\n" };
    await fc.assert(
      fc.asyncProperty(files, files, async (ours, theirs) => {
        const { repository } = await gitWorld();
        const base = await commit(repository, start);
        await repository.createBranch("topic", base);
        const own = await commit(repository, ours, { at: AT + 1_000 });
        const topic = await commit(repository, theirs, { branch: "topic", at: AT + 2_000 });
        await repository.createBranch("forced", own);
        await repository.createBranch("forcing", topic);
        using clone = await cloned(repository);
        clone.git("checkout", "--quiet", "-b", "mine", own);
        const conflicts = () =>
          clone.git("diff", "--name-only", "--diff-filter=U").split("\n").filter(Boolean);
        let isClean = true;
        try {
          clone.git("-c", "merge.renames=false", "merge", "--quiet", "--no-ff", "-m", "Merge", topic);
        } catch {
          isClean = false;
        }
        // A forced merge has the branch's state of conflicts only.
        await repository.merge("forced", "forcing", "force", AUTHOR, AT + 3_000);
        const forced = await texts(repository, (await repository.head("forced")) ?? "");
        const [wanted, unmerged] = [await texts(repository, topic), conflicts()];
        for (const path of new Set(Object.keys({ ...start, ...ours, ...theirs }))) {
          const isMerged = clone.git("ls-files", "--", path) !== "" && !unmerged.includes(path);
          expect([path, forced[path]]).toEqual([
            path,
            unmerged.includes(path) ? wanted[path] : isMerged ? clone.read(path) : undefined,
          ]);
        }
        const failing = await repository.merge("main", "topic", "fail", AUTHOR, AT + 3_000);
        if (!isClean) {
          expect(failing).toEqual({ conflicts: unmerged.map((path) => ({ path })) });
          expect(await repository.merge("main", "topic", "rebase", AUTHOR, AT)).toEqual(failing);
          expect(await repository.head("main")).toBe(own);
          return;
        }
        const head = (await repository.head("main")) ?? "";
        using after = await cloned(repository);
        expect(after.git("rev-parse", `${head}^{tree}`)).toBe(clone.git("rev-parse", "HEAD^{tree}"));
        expect(failing).toEqual({ oid: head });
        expect(await repository.merge("main", "topic", "rebase", AUTHOR, AT)).toEqual({ oid: head });
      }),
      { numRuns: 15 },
    );
  });

  test("GITMERGE-1 GITMERGE-2 merges long files within bounds, and takes the branch's state of conflicts only", async () => {
    const { repository } = await gitWorld();
    const equal = Array.from({ length: 20_000 }, () => "\n");
    const numbered = Array.from({ length: 8_000 }, (_, line) => `${line}\n`);
    const each = (step: number) => numbered.map((line, at) => (at % step === 0 ? `new ${line}` : line));
    const large = `${"x".repeat(1_024 * 1_024)}\n`;
    const cases: Record<string, [base: string[], ours: string[], theirs: string[]]> = {
      equal: [equal, ["a\n", ...equal.slice(1, 10_000), "b\n", ...equal], [...equal, "c\n"]],
      // Beyond the bound, all lines between the changes count as changed.
      few: [numbered, each(100), numbered.with(4_050, "b\n")],
      many: [numbered, each(4), numbered.with(4_050, "b\n")],
      outside: [numbered, each(4), numbered.with(-1, "b\n")],
      large: [
        [large, "0\n", large],
        ["a\n", large, "0\n", large],
        [large, "0\n", large, "b\n"],
      ],
    };
    const side = (at: number) =>
      Object.fromEntries(Object.entries(cases).map(([path, texts]) => [path, texts[at]?.join("") ?? ""]));
    const base = await commit(repository, side(0));
    await repository.createBranch("topic", base);
    await commit(repository, side(1));
    await commit(repository, side(2), { branch: "topic" });
    const failed = await repository.merge("main", "topic", "fail", AUTHOR, AT);
    expect(failed).toEqual({ conflicts: [{ path: "large" }, { path: "many" }] });
    await repository.merge("main", "topic", "force", AUTHOR, AT);
    const merged = await texts(repository, (await repository.head("main")) ?? "");
    expect(merged.equal === [...(cases.equal?.[1] ?? []), "c\n"].join("")).toBe(true);
    expect(merged.few === each(100).with(4_050, "b\n").join("")).toBe(true);
    expect(merged.outside === each(4).with(-1, "b\n").join("")).toBe(true);
    for (const path of ["many", "large"]) expect(merged[path] === side(2)[path]).toBe(true);
  });

  test("GITMERGE-2 rebases with reads that grow as the histories", async () => {
    const reads = async (length: number) => {
      const { repository } = await gitWorld();
      const base = await commit(repository, { base: "base\n" });
      await repository.createBranch("topic", base);
      for (let round = 1; round <= length; round++) {
        const at = AT + round * 1_000;
        await commit(repository, { a: `${round}\n` }, { at });
        await commit(repository, { b: `${round}\n` }, { branch: "topic", at });
      }
      const read = vi.spyOn(NewObjects.prototype, "read");
      await repository.merge("main", "topic", "rebase", AUTHOR, AT);
      expect(await repository.log((await repository.head("main")) ?? "", 99)).toHaveLength(2 * length + 1);
      const count = read.mock.calls.length;
      read.mockRestore();
      return count;
    };
    expect(await reads(32)).toBeLessThan(2.5 * (await reads(16)));
  });

  test("GITMERGE-2 rebases the commits of a branch, and moves forward without a merge", async () => {
    const { repository } = await gitWorld();
    const base = await commit(repository, { a: "a\n" });
    await repository.createBranch("topic", base);
    const first = await commit(
      repository,
      { b: "b\n" },
      { branch: "topic", message: "First", at: AT + 1_000 },
    );
    await commit(repository, { c: "c\n" }, { branch: "topic", message: "Second", at: AT + 2_000 });
    const own = await commit(repository, { d: "d\n", b: "b\n" }, { message: "Own", at: AT + 3_000 });
    const result = await repository.merge("main", "topic", "rebase", { name: "Merger", email: "" }, AT);
    const head = await repository.head("main");
    expect(result).toEqual({ oid: head });
    const log = await repository.log(head ?? "", 9);
    // "First" has no change left.
    expect(log.map(({ message, author }) => [message, author.name])).toEqual([
      ["Second\n", "Ada"],
      ["Own\n", "Ada"],
      ["Change files\n", "Ada"],
    ]);
    expect(log[0]?.parents).toEqual([own]);
    await repository.createBranch("later", head ?? "");
    const later = await commit(repository, { e: "e\n" }, { branch: "later" });
    expect(await repository.merge("main", "later", "fail", AUTHOR, AT)).toEqual({ oid: later });
    expect(await repository.head("main")).toBe(later);
    await expect(repository.merge("main", "absent", "fail", AUTHOR, AT)).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    expect(await repository.log(first, 9)).toHaveLength(2);
  });
});

/** Collects objects of a bundle, which git would not make. */
function crafted() {
  const objects = new Map<string, { type: ObjectType; content: Uint8Array }>();
  const add = (type: ObjectType, content: Uint8Array | string): string => {
    const object = { type, content: typeof content === "string" ? encode(content) : content };
    const oid = oidOf(object);
    objects.set(oid, object);
    return oid;
  };
  const tree = (...entries: [mode: string, name: string, oid: string][]) =>
    add("tree", treeBytes(...entries));
  const commitAt = (root: string, ...parents: string[]) => add("commit", commitText(root, parents));
  const bundle = (...references: [name: string, oid: string][]) =>
    encodeBundle({
      references: references.map(([name, oid]) => ({ name, oid })),
      pack: writePack(objects).bytes,
    });
  return { add, tree, commitAt, bundle };
}

/** Returns a tree with its entries in the order of the arguments. */
function treeBytes(...entries: [mode: string, name: string, oid: string][]): Uint8Array {
  return concat(
    entries.map(([mode, name, oid]): Uint8Array => encodeTree([{ mode, name, oid } as TreeEntry])),
  );
}

function commitText(root: string, parents: readonly string[] = [], author = "A <a@b>"): string {
  const lines = parents.map((parent) => `parent ${parent}\n`).join("");
  return `tree ${root}\n${lines}author ${author} 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n`;
}

/** Returns a pack of entries: the bytes of a header, and the content to compress if the header has none. */
function rawPack(entries: readonly [header: Uint8Array, content?: Uint8Array][]): Uint8Array {
  const start = concat([
    encode("PACK"),
    Uint8Array.of(0, 0, 0, 2, 0, 0, entries.length >> 8, entries.length & 255),
  ]);
  const body = concat([
    start,
    ...entries.flatMap(([header, content]) =>
      content === undefined ? [header] : [header, deflateSync(content)],
    ),
  ]);
  return concat([body, sha1(body)]);
}

/** Returns the beginning of an entry. */
function rawHeader(kind: number, size: number): Uint8Array {
  const bytes = [(kind << 4) | (size & 15)];
  for (let rest = size >> 4; rest > 0; rest >>= 7) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 128;
    bytes.push(rest & 127);
  }
  return Uint8Array.from(bytes);
}

const MAIN = "refs/heads/main";

test("the common ancestor of two commits is behind no other one, whatever their times, and a long history is not read", async () => {
  const dag = fc
    .array(fc.tuple(fc.nat({ max: 1_000 }), fc.nat({ max: 1_000 }), fc.boolean(), fc.nat({ max: 3 })), {
      minLength: 2,
      maxLength: 25,
    })
    .map((choices) =>
      choices.map(([first, second, isMerge, time], at) => ({
        parents: at === 0 ? [] : [...new Set([first % at, ...(isMerge ? [second % at] : [])])],
        time,
      })),
    );
  await fc.assert(
    fc.asyncProperty(dag, fc.nat(), fc.nat(), fc.boolean(), async (commits, one, other, isInOrder) => {
      const objects = {
        async read(oid: string) {
          const n = Number(oid);
          const { parents = [], time = 0 } = commits[n] ?? {};
          const content = encodeCommit({
            ...{ tree: "0".repeat(40), parents: parents.map(String), message: "x", author: AUTHOR },
            at: AT + (isInOrder ? n : time) * 1_000,
          });
          return { type: "commit" as const, content };
        },
      };
      const ancestors = (of: number): Set<number> => {
        const found = new Set([of]);
        for (const each of found) for (const parent of commits[each]?.parents ?? []) found.add(parent);
        return found;
      };
      const [ours, theirs] = [one % commits.length, other % commits.length];
      const base = Number(await mergeBase(objects, String(ours), String(theirs)));
      const common = [...ancestors(ours)].filter((each) => ancestors(theirs).has(each));
      expect(common).toContain(base);
      const best = common.filter(
        (each) => !common.some((more) => more !== each && ancestors(more).has(each)),
      );
      expect(best).toContain(base);
    }),
    { numRuns: 400 },
  );
  // Two branches of three commits on a line of 1,000 commits.
  let reads = 0;
  const line = {
    async read(oid: string) {
      reads++;
      const n = Number(oid);
      const parent = n === 1_003 ? 999 : n - 1;
      const commit = {
        tree: "0".repeat(40),
        parents: n === 0 ? [] : [`${parent}`],
        message: "x",
        author: AUTHOR,
      };
      return { type: "commit" as const, content: encodeCommit({ ...commit, at: AT + n * 1_000 }) };
    },
  };
  expect(await mergeBase(line, "1002", "1005")).toBe("999");
  expect(reads).toBeLessThan(10);
});

describe("a hostile bundle", () => {
  test("REFS-1 REFS-2 with one branch twice is refused, and the branch stays", async () => {
    const { repository, rows, objects } = await gitWorld();
    const first = await commit(repository, { a: "a\n" });
    const stored = await objects.list("git/", 10);
    const { tree, commitAt, bundle } = crafted();
    const one = commitAt(tree());
    const other = commitAt(tree(), one);
    await expect(repository.importBundle(bundle([MAIN, one], [MAIN, other]))).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
    const moves = [
      { name: MAIN, from: first, to: one },
      { name: MAIN, from: first, to: other },
    ];
    await expect(rows.move(ADDRESS, moves)).rejects.toMatchObject({ code: "INVALID_INPUT" });
    expect(await rows.references(ADDRESS)).toEqual([{ name: MAIN, oid: first }]);
    expect(await objects.list("git/", 10)).toEqual(stored);
  });

  test.each<[string, (craft: ReturnType<typeof crafted>) => string]>([
    [
      "a tree as a file and as a folder",
      ({ add, tree, commitAt }) => {
        const evil = tree(["100644", ".git", add("blob", "x")]);
        return commitAt(tree(["100644", "a", evil], ["40000", "b", evil]));
      },
    ],
    ["a tree as a file", ({ tree, commitAt }) => commitAt(tree(["100644", "a", tree()]))],
    ["a branch at a file", ({ add }) => add("blob", "x")],
    [
      "a name twice",
      ({ add, tree, commitAt }) => {
        const [one, other] = [add("blob", "1"), add("blob", "2")];
        return commitAt(tree(["100644", "f", one], ["100644", "f", other]));
      },
    ],
    [
      "a file and a folder of one name",
      ({ add, tree, commitAt }) => {
        const link = add("blob", ".git/hooks");
        return commitAt(tree(["120000", "d", link], ["40000", "d", tree(["100644", "x", link])]));
      },
    ],
    [
      "names out of order",
      ({ add, tree, commitAt }) => {
        const blob = add("blob", "1");
        return commitAt(tree(["100644", "b", blob], ["100644", "a", blob]));
      },
    ],
    [
      "an author of many signs",
      ({ add, tree }) => add("commit", commitText(tree(), [], "<".repeat(300_000))),
    ],
  ])("with %s is refused", async (_, craft) => {
    const { repository, rows, objects } = await gitWorld();
    const made = crafted();
    const bytes = made.bundle([MAIN, craft(made)]);
    await expect(repository.importBundle(bytes)).rejects.toMatchObject({ code: "INVALID_INPUT" });
    expect(await rows.references(ADDRESS)).toEqual([]);
    expect(await objects.list("git/", 10)).toEqual([]);
  });

  test("with objects that no branch reaches loses these objects", async () => {
    const { repository } = await gitWorld();
    const { add, tree, commitAt, bundle } = crafted();
    const evil = commitAt(tree(["100644", "..", add("blob", "x")]));
    const oid = commitAt(tree());
    await repository.importBundle(bundle([MAIN, oid]));
    expect((await repository.tree(oid)).size).toBe(0);
    await expect(repository.createBranch("evil", evil)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("leaves the branches of workspaces where they are", async () => {
    const { repository } = await gitWorld();
    const { tree, commitAt, bundle } = crafted();
    const name = "refs/heads/team/dramatis/conv-conv_01JD0000000000000000000000";
    const root = commitAt(tree());
    await repository.importBundle(bundle([MAIN, root], [name, root]));
    const tip = commitAt(tree(), root);
    await expect(repository.importBundle(bundle([MAIN, tip], [name, tip]))).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("belongs to a conversation"),
    });
    expect(new Set((await repository.branches()).map(({ oid }) => oid))).toEqual(new Set([root]));
    await repository.importBundle(bundle([MAIN, tip], [name, root]));
    expect(await repository.head("main")).toBe(tip);
  });

  test("with branches that move over one history is imported, and over many long histories is refused", async () => {
    const { repository, rows } = await gitWorld();
    const { add, tree, commitAt, bundle } = crafted();
    const names = Array.from({ length: 600 }, (_, at) => `${MAIN}${at}`);
    const root = commitAt(tree());
    await repository.importBundle(bundle(...names.map((name): [string, string] => [name, root])));
    let tip = root;
    for (let length = 0; length < 2_000; length++) tip = commitAt(tree(), tip);
    const present = await rows.references(ADDRESS);
    const tips = names.map((name): [string, string] => [
      name,
      add("commit", commitText(tree(), [tip], `${name} <a@b>`)),
    ]);
    await expect(repository.importBundle(bundle(...tips))).rejects.toMatchObject({ code: "TOO_LARGE" });
    expect(await rows.references(ADDRESS)).toEqual(present);
    await repository.importBundle(bundle(...names.map((name): [string, string] => [name, tip])));
    expect(new Set((await repository.branches()).map(({ oid }) => oid))).toEqual(new Set([tip]));
  });

  test("PACK-3 with objects that no branch reaches keeps its compressed bytes, and does not grow without bound", async () => {
    // Random bytes do not compress. Each delta copies them, and adds two bytes.
    const body = concat(Array.from({ length: 3_000 }, (_, at) => sha1(encode(`${at}`))));
    const size = (bytes: number) => [(bytes & 127) | 128, ((bytes >> 7) & 127) | 128, bytes >> 14];
    const copy = [...size(body.length), ...size(body.length + 2), 0xb0, body.length & 255, body.length >> 8];
    const base = oidOf({ type: "blob", content: body });
    const bundleOf = (count: number, isBaseReached: boolean) => {
      const files = isBaseReached ? [base] : [];
      const entry = (kind: number, content: Uint8Array): [Uint8Array, Uint8Array] => [
        rawHeader(kind, content.length),
        content,
      ];
      const entries = [entry(3, body), entry(3, encode("unreached"))];
      for (let at = 0; at < count; at++) {
        const end = Uint8Array.of(at >> 8, at & 255);
        const delta = Uint8Array.from([...copy, 2, ...end]);
        entries.push([concat([rawHeader(7, delta.length), fromHex(base)]), delta]);
        files.push(oidOf({ type: "blob", content: concat([body, end]) }));
      }
      const tree = treeBytes(
        ...files.map((oid, at): [string, string, string] => ["100644", `${at}`.padStart(4, "0"), oid]),
      );
      const text = encode(commitText(oidOf({ type: "tree", content: tree })));
      const oid = oidOf({ type: "commit", content: text });
      const pack = rawPack([...entries, entry(2, tree), entry(1, text)]);
      return {
        oid,
        last: files.at(-1) ?? "",
        bytes: encodeBundle({ references: [{ name: MAIN, oid }], pack }),
      };
    };
    for (const isBaseReached of [true, false]) {
      const { repository, rows, open } = await gitWorld();
      const { oid, last, bytes } = bundleOf(isBaseReached ? 100 : 5, isBaseReached);
      await repository.importBundle(bytes);
      const [stored] = await rows.packs(ADDRESS);
      if (isBaseReached) expect(stored?.bytes).toBeLessThan(bytes.length);
      expect(await open().tree(oid)).toHaveProperty("size", isBaseReached ? 101 : 5);
      expect((await open().blob(last)).length).toBe(body.length + 2);
      expect(
        await open()
          .blob(base)
          .then(
            () => true,
            () => false,
          ),
      ).toBe(isBaseReached);
      using clone = await cloned(open());
      expect(clone.git("rev-parse", "HEAD")).toBe(oid);
    }
    const { repository, rows } = await gitWorld();
    await expect(repository.importBundle(bundleOf(600, false).bytes)).rejects.toMatchObject({
      code: "TOO_LARGE",
    });
    expect([await rows.packs(ADDRESS), await rows.references(ADDRESS)]).toEqual([[], []]);
  });

  test("GITTREE-1 with folders that double at each level is refused, and so is a commit with too many files", async () => {
    const { repository } = await gitWorld();
    const { add, tree, commitAt, bundle } = crafted();
    const blob = add("blob", "x");
    const levels = (count: number) => {
      let root = tree(["100644", "f", blob]);
      for (let level = 0; level < count; level++) root = tree(["40000", "a", root], ["40000", "b", root]);
      return root;
    };
    await expect(repository.importBundle(bundle([MAIN, commitAt(levels(20))]))).rejects.toMatchObject({
      code: "TOO_LARGE",
    });
    expect(await repository.branches()).toEqual([]);
    // Each level doubles the work of a walk that does not end early.
    const wide = (kind: string) =>
      tree(
        ...Array.from({ length: 9_000 }, (_, n): [string, string, string] => {
          const name = String(n).padStart(5, "0");
          return ["40000", name, tree(["100644", `${kind}${n}`, blob])];
        }),
      );
    const [f, g] = [wide("f"), wide("g")];
    let lower = tree(["100644", "f", blob]);
    for (let level = 0; level < 40; level++)
      lower = tree(
        ["40000", "a", lower],
        ["40000", "b", f],
        ["40000", "c", g],
        ["40000", "d", lower],
        ["40000", "e", f],
      );
    await expect(repository.importBundle(bundle([MAIN, commitAt(lower)]))).rejects.toMatchObject({
      code: "TOO_LARGE",
    });
    // 49,917 files and folders.
    const [large, small] = [levels(14), levels(7)];
    const oid = commitAt(tree(["40000", "a", large], ["40000", "b", small], ["40000", "c", small]));
    await repository.importBundle(bundle([MAIN, oid]));
    const more = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, "x"]));
    await expect(commit(repository, more(200))).rejects.toMatchObject({ code: "TOO_LARGE" });
    expect(await repository.head("main")).toBe(oid);
    expect((await repository.tree(await commit(repository, more(50)))).size).toBeGreaterThan(16_000);
  });

  test("with a large commit or tag is refused", async () => {
    const { repository } = await gitWorld();
    const { add, tree, bundle } = crafted();
    const commit = commitText(tree(), []);
    const most = 1_024 * 1_024;
    const long = (length: number) => add("commit", `${commit}${"x".repeat(length - commit.length)}`);
    const oid = long(most);
    await repository.importBundle(bundle([MAIN, oid]));
    const tag = add("tag", `object ${oid}\ntype commit\ntag v1\ntagger ${"x".repeat(most)}`);
    await expect(repository.importBundle(bundle([MAIN, oid], ["refs/tags/v1", tag]))).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: expect.stringContaining("A tag has more than") },
    });
    const other = crafted();
    other.tree();
    const large = other.add("commit", `${commit}${"x".repeat(most)}`);
    await expect(repository.importBundle(other.bundle([MAIN, large]))).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: expect.stringContaining("A commit has more than") },
    });
  });

  test("with folders that cost much more than their bytes is refused", async () => {
    const { repository } = await gitWorld();
    const [x, y] = [encode("x"), encode("y")];
    const [one, other] = [oidOf({ type: "blob", content: x }), oidOf({ type: "blob", content: y })];
    const entries: [Uint8Array, Uint8Array][] = [x, y].map((each) => [rawHeader(3, 1), each]);
    // Each folder has 2 MiB, and is a delta of the next folder.
    const all = encodeTree(
      Array.from({ length: 40_000 }, (_, at) => ({
        mode: "100644",
        name: String(at).padStart(30, "0"),
        oid: one,
      })),
    );
    const folders = Array.from({ length: 100 }, (_, at) => {
      const folder = all.slice();
      folder.set(fromHex(other), (at + 1) * (all.length / 40_000) - 20);
      return folder;
    });
    let tip: string | undefined;
    for (const [at, content] of folders.entries()) {
      const base = folders[at + 1];
      if (base === undefined) entries.push([rawHeader(2, content.length), content]);
      else {
        const delta = encodeDelta(base, content, sharedEnds(base, content));
        entries.push([
          concat([rawHeader(7, delta.length), fromHex(oidOf({ type: "tree", content: base }))]),
          delta,
        ]);
      }
      const commit = encode(commitText(oidOf({ type: "tree", content }), tip === undefined ? [] : [tip]));
      entries.push([rawHeader(1, commit.length), commit]);
      tip = oidOf({ type: "commit", content: commit });
    }
    const bundle = { references: [{ name: MAIN, oid: tip ?? "" }], pack: rawPack(entries) };
    expect(bundle.pack.length).toBeLessThan(1_000_000);
    await expect(repository.importHistory(bundle)).rejects.toMatchObject({ code: "TOO_LARGE" });
  });

  test("with many branches is refused", async () => {
    const { repository } = await gitWorld();
    const { tree, commitAt, bundle } = crafted();
    const oid = commitAt(tree());
    const references = Array.from({ length: 2_001 }, (_, at): [string, string] => [`${MAIN}${at}`, oid]);
    await expect(repository.importBundle(bundle(...references))).rejects.toMatchObject({ code: "TOO_LARGE" });
  });
});

describe("a pack", () => {
  const blob = (text: string) => ({ type: "blob" as const, content: encode(text) });
  const packOf = (texts: readonly string[]) =>
    writePack(new Map(texts.map((text) => [oidOf(blob(text)), blob(text)])));

  test("PACK-1 PACK-2 joined of packs has each object once, with its compressed bytes", () => {
    const texts = fc.array(fc.string(), { maxLength: 6 });
    fc.assert(
      fc.property(fc.array(texts, { minLength: 1, maxLength: 4 }), (lists) => {
        const packs = lists.map(packOf);
        const joined = joinPacks(
          packs.map((pack) => ({ bytes: pack.bytes, index: new PackIndex(encodeIndex(pack)) })),
        );
        const { entries } = indexPack(joined.bytes);
        const found = entries.map(({ oid, crc }) => `${oid} ${crc}`).sort();
        const wanted = packs.flatMap((pack) => pack.entries.map(({ oid, crc }) => `${oid} ${crc}`));
        expect(found).toEqual([...new Set(wanted)].sort());
      }),
    );
  });

  test("PACK-4 chains stay short and objects single if joined packs are joined again", () => {
    const line = (n: number) => ({
      mode: "100644",
      name: `f${String(n).padStart(5, "0")}`,
      oid: toHex(sha1(encode(`${n}`))),
    });
    const treeOf = (count: number) => ({
      type: "tree" as const,
      content: encodeTree(Array.from({ length: count }, (_, n) => line(n))),
    });
    const packOfTrees = (from: number, to: number) =>
      joined(
        ...Array.from({ length: to - from }, (_, n) => {
          const tree = treeOf(from + n);
          return writePack(new Map([[oidOf(tree), tree]]));
        }),
      );
    const joined = (...packs: ReturnType<typeof writePack>[]) =>
      joinPacks(packs.map((pack) => ({ bytes: pack.bytes, index: new PackIndex(encodeIndex(pack)) })));
    // The packs share trees, and each has a chain of 40 deltas.
    const whole = joined(packOfTrees(100, 141), packOfTrees(135, 176), packOfTrees(170, 211));
    const indexed = indexPack(whole.bytes);
    expect(indexed.entries.map(({ oid }) => oid).sort()).toEqual(
      Array.from({ length: 111 }, (_, n) => oidOf(treeOf(100 + n))).sort(),
    );
    expect(whole.entries).toHaveLength(111);
    using folder = gitFolder();
    folder.write("all.pack", whole.bytes);
    folder.git("index-pack", "all.pack");
    expect(chainsOf(folder.git("verify-pack", "--verbose", "all.pack"))).toBeLessThanOrEqual(50);
  });

  test("GITDB-2 a cache keeps what was used last, within its bytes", () => {
    const cache = new BoundedCache<string>(40);
    for (const key of ["a", "b", "c", "d"]) cache.set(key, key, 10);
    cache.get("a");
    cache.set("e", "e", 10);
    cache.set("large", "large", 11);
    expect(["a", "b", "c", "d", "e", "large"].map((key) => cache.get(key))).toEqual([
      ...["a", undefined, "c", "d", "e", undefined],
    ]);
    for (let n = 0; n < 100; n++) cache.set(`${n}`, `${n}`, 10);
    expect(["95", "96", "97", "98", "99"].map((key) => cache.get(key))).toEqual([
      undefined,
      "96",
      "97",
      "98",
      "99",
    ]);
  });

  test("PACK-1 with an object twice is refused", () => {
    const entry: [Uint8Array, Uint8Array] = [rawHeader(3, 1), encode("x")];
    expect(indexPack(rawPack([entry])).entries).toHaveLength(1);
    expect(() => indexPack(rawPack([entry, entry]))).toThrow(/twice/);
  });

  test("with a long chain of deltas, a padded size, or large deltas is refused", () => {
    // Each delta adds a byte to its base. The pack has each delta before its base.
    const chain = (length: number) => {
      const entries: [Uint8Array, Uint8Array][] = [[rawHeader(3, 0), new Uint8Array(0)]];
      for (let size = 0; size < length; size++) {
        const number = (value: number) => (value < 128 ? [value] : [(value & 127) | 128, value >> 7]);
        const copy = size === 0 ? [] : size < 256 ? [0x90, size] : [0xb0, size & 255, size >> 8];
        const delta = Uint8Array.from([...number(size), ...number(size + 1), ...copy, 1, 120]);
        const base = fromHex(oidOf(blob("x".repeat(size))));
        entries.unshift([concat([rawHeader(7, delta.length), base]), delta]);
      }
      return rawPack(entries);
    };
    expect(indexPack(chain(250)).entries).toHaveLength(251);
    expect(() => indexPack(chain(251))).toThrow(/more than 250 deltas/);
    const padded = Uint8Array.from([0x80 | (3 << 4) | 1, ...Array.from({ length: 40 }, () => 0x80), 0]);
    expect(() => indexPack(rawPack([[padded, encode("x")]]))).toThrow();
    const zeroes = new Uint8Array(16 * 1_024 * 1_024);
    const large = concat([rawHeader(7, zeroes.length), new Uint8Array(20), deflateSync(zeroes)]);
    expect(() => indexPack(rawPack(Array.from({ length: 65 }, () => [large])))).toThrow(/when inflated/);
  });
});

describe("the objects of a repository", () => {
  test("GITDB-1 are exported whole while another writer joins packs, and never in part", async () => {
    const { repository, objects, open } = await gitWorld();
    const commits: string[] = [];
    const add = async () => {
      const at = AT + commits.length * 1_000;
      commits.push(await commit(repository, { [`f${commits.length}`]: `${commits.length}\n` }, { at }));
    };
    while (commits.length < 16) await add();
    const get = objects.get.bind(objects);
    objects.get = async (...args) => {
      objects.get = get;
      await add();
      return get(...args);
    };
    using folder = gitFolder();
    folder.git("clone", "--quiet", folder.write("all.bundle", await open().exportBundle()), "clone");
    expect(folder.git("-C", "clone", "rev-list", "--count", "HEAD")).toBe("16");
    expect(commits).toHaveLength(17);
    objects.get = async (key, range) => (key.endsWith(".idx") ? null : get(key, range));
    const reader = open();
    await expect(reader.exportBundle()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(reader.tree(commits[0] ?? "")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    objects.get = get;
    expect((await reader.tree(commits[16] ?? "")).size).toBe(17);
  });

  test("GITDB-2 are read in blocks, and old blocks are forgotten", async () => {
    const { repository, objects, open } = await gitWorld();
    const blobs: string[] = [];
    for (const start of [1, 2]) {
      // A repetition at this distance does not compress.
      const part = concat(Array.from({ length: 3_500 }, (_, at) => sha1(encode(`${start} ${at}`))));
      const content = concat(Array.from({ length: 200 }, () => part));
      const head = await repository.head("main");
      const parents = head === null ? [] : [head];
      const input = {
        parents,
        changes: new Map([["f", { content }]]),
        message: "Write",
        author: AUTHOR,
        at: AT,
      };
      await repository.commit("main", head, input);
      blobs.push(oidOf({ type: "blob", content }));
    }
    const lengths: number[] = [];
    const get = objects.get.bind(objects);
    objects.get = (key, range) => {
      if (key.endsWith(".pack")) lengths.push(range?.length ?? Number.POSITIVE_INFINITY);
      return get(key, range);
    };
    const reader = open();
    const [first = "", second = ""] = blobs;
    for (const oid of [first, second, first]) expect(await reader.blob(oid)).toHaveLength(14_000_000);
    expect(Math.max(...lengths)).toBe(1_024 * 1_024);
    expect(lengths).toHaveLength(3 * 14);
  });

  test("GITDB-2 that are new have a bound together", async () => {
    const source = { list: async () => [], part: async () => undefined };
    const objects = new NewObjects(new ObjectDatabase(source));
    const add = (at: number) => {
      const content = new Uint8Array(16 * 1_024 * 1_024);
      content[0] = at;
      return objects.add({ type: "blob", content });
    };
    for (const at of [1, 2, 3, 4, 4]) await add(at);
    await expect(add(5)).rejects.toMatchObject({ code: "TOO_LARGE" });
    expect(objects.added.size).toBe(4);
  });

  test("are named by whole ids, and each is used as its type only", async () => {
    const { repository } = await gitWorld();
    const evil = treeBytes(["100644", ".git", oidOf({ type: "blob", content: encode("x") })]);
    const text = commitText(oidOf({ type: "blob", content: evil }));
    const content = encode(text);
    const oid = await commit(repository, { x: "x", c: text });
    const [head, input] = [
      await repository.head("main"),
      { changes: new Map(), message: "Merge", author: AUTHOR, at: AT },
    ];
    const asCommit = oidOf({ type: "blob", content });
    await expect(repository.createBranch("evil", asCommit)).rejects.toMatchObject({ code: "INVALID_INPUT" });
    await expect(repository.tree(asCommit)).rejects.toMatchObject({ code: "INVALID_INPUT" });
    await expect(repository.blob(oid)).rejects.toMatchObject({ code: "INVALID_INPUT" });
    for (const name of [
      `${oid} refs/heads/injected\n${oid}`,
      oid.toUpperCase(),
      oid.slice(1),
      "1".repeat(40),
    ]) {
      await expect(repository.createBranch("evil", name)).rejects.toMatchObject({ code: "NOT_FOUND" });
      const parents = [oid, name];
      await expect(repository.commit("main", head, { ...input, parents })).rejects.toMatchObject({
        code: "NOT_FOUND",
      });
    }
    expect(await repository.branches()).toEqual([{ name: "main", oid }]);
    await expect(repository.createBranch("漢".repeat(67), oid)).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
  });
});
