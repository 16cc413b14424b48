/** The working tree of a workspace: its operations against a model, its differences against Git. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { treeChanges, treeDiff } from "../../src/agents/workspace/core/diff.ts";
import { operate } from "../../src/agents/workspace/core/operations.ts";
import { searchTree } from "../../src/agents/workspace/core/search.ts";
import { treePath } from "../../src/agents/workspace/core/tree-path.ts";
import { type BaseFile, type FileMode, WorkingTree } from "../../src/agents/workspace/core/working-tree.ts";
import { sensitiveFiles } from "../../src/policy/globs.ts";

const SANDBOX = { code: "PERMISSION_DENIED", options: { rule: "sandbox" } };
const SENSITIVE = { code: "PERMISSION_DENIED", options: { rule: "sensitive-file" } };
const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

type Files = Record<string, string | readonly [string, FileMode]>;

/** Returns a tree with files of a commit. The oid of a file is its content. */
function treeOf(files: Files): WorkingTree {
  const base = Object.entries(files).map(([path, file]) => {
    const [oid, mode] = typeof file === "string" ? [file, "100644"] : file;
    return [path, { oid, mode }] as const;
  });
  return new WorkingTree(new Map(base), async (oid) => encode(oid));
}

async function filesOf(tree: WorkingTree): Promise<Record<string, string>> {
  const files = tree.paths().map(async (path) => [path, decode((await tree.file(path)).content)]);
  return Object.fromEntries(await Promise.all(files));
}

const path = fc.constantFrom("a", "b", "d/a", "d/b", "d/e/f", "a/x");
const text = fc.constantFrom("", "1\n", "1\n2\n", "2", "x\ny\nz\n");
const files = fc.dictionary(path, text).filter((given) => {
  const paths = Object.keys(given);
  return paths.every((one) => paths.every((other) => !other.startsWith(`${one}/`)));
});

const step = fc.oneof(
  fc.record({ do: fc.constant("write" as const), path, text }),
  fc.record({ do: fc.constant("remove" as const), path }),
  fc.record({ do: fc.constant("edit" as const), path, text, by: text }),
);

/** Applies a step to plain files. Returns `null` if the step must fail. */
function modelled(
  given: Record<string, string>,
  one: typeof step extends fc.Arbitrary<infer Step> ? Step : never,
) {
  const next = { ...given };
  const within = (folder: string) => Object.keys(next).filter((each) => each.startsWith(`${folder}/`));
  const isBlocked = (place: string) =>
    within(place).length > 0 || Object.keys(next).some((each) => place.startsWith(`${each}/`));
  switch (one.do) {
    case "write":
      if (isBlocked(one.path)) return null;
      next[one.path] = one.text;
      return next;
    case "remove": {
      const gone = one.path in next ? [one.path] : within(one.path);
      for (const each of gone) delete next[each];
      return gone.length === 0 ? null : next;
    }
    case "edit": {
      const before = next[one.path];
      if (before === undefined || one.text === "" || one.text === one.by) return null;
      if (before.split(one.text).length !== 2) return null;
      next[one.path] = before.split(one.text).join(one.by);
      return next;
    }
    default:
      return one satisfies never;
  }
}

/** Checks the sums of a tree against all of its files (TREE-6). */
async function checkSums(tree: WorkingTree) {
  const bytes = [...tree.changes.values()].map((file) => file?.content.byteLength ?? 0);
  expect(tree.changedBytes).toBe(bytes.reduce((sum, each) => sum + each, 0));
  for (const folder of ["", "a", "b", "d", "d/a", "d/e", "d/e/f", "z"])
    expect(tree.isFolder(folder), folder).toBe(folder === "" || tree.paths(folder).length > 0);
}

/** Returns a file of a length. */
const filled = (length: number, byte = 97) => ({
  content: new Uint8Array(length).fill(byte),
  mode: "100644" as const,
});

describe("A63 the working tree", () => {
  test("TREE-2 TREE-3 TREE-4 TREE-6 equals a model after any operations", async () => {
    await fc.assert(
      fc.asyncProperty(files, fc.array(step, { maxLength: 12 }), async (given, steps) => {
        const tree = treeOf(given);
        let model: Record<string, string> = { ...given };
        for (const one of steps) {
          const next = modelled(model, one);
          const run = async () => {
            if (one.do === "write") await tree.write(one.path, encode(one.text));
            if (one.do === "remove") await tree.remove(one.path);
            if (one.do === "edit") await tree.edit(one.path, { before: one.text, after: one.by });
          };
          if (next === null) await expect(run()).rejects.toHaveProperty("code");
          else await run();
          model = next ?? model;
          expect(await filesOf(tree)).toEqual(model);
          await checkSums(tree);
          const copy = treeOf(given);
          await copy.write("z/y", encode("z"));
          copy.adopt(tree);
          await checkSums(copy);
        }
        const changed = [...new Set([...Object.keys(given), ...Object.keys(model)])].filter(
          (each) => given[each] !== model[each],
        );
        expect(tree.status().map((each) => each.path)).toEqual(changed.sort());
      }),
      { numRuns: 300 },
    );
  });

  test("TREE-6 at most 10,000 files are changed, and a restored or a deleted new file makes room", async () => {
    const kept = Object.fromEntries(["d/a", "d/b", "e"].map((each) => [each, each]));
    let [scans, reads] = [0, 0];
    class Base extends Map<string, BaseFile> {
      override keys() {
        scans += 1;
        return super.keys();
      }
    }
    const base = new Base(Object.keys(kept).map((each) => [each, { oid: each, mode: "100644" }]));
    const blob = async (oid: string) => {
      reads += 1;
      return encode(oid);
    };
    const tree = new WorkingTree(base, blob);
    for (let n = 0; n < 9_999; n += 1) await tree.put(`d/new/${n}`, filled(1));
    expect([scans, reads]).toEqual([1, 0]);
    await tree.write("e", encode("changed"));
    const full = { code: "TOO_LARGE", message: expect.stringContaining("Commit first, or delete new files") };
    for (const refused of [
      tree.write("one-more", encode("")),
      tree.write("d/a", encode("")),
      tree.remove("d/a"),
    ])
      await expect(refused).rejects.toMatchObject(full);
    expect(tree.changes.size).toBe(10_000);
    await tree.write("d/a", encode("d/a"));
    await tree.write("d/new/0", encode("again"));
    await tree.write("e", encode("e"));
    await tree.write("d/a", encode(""));
    await expect(tree.remove("d/b")).rejects.toMatchObject(full);
    expect(await tree.remove("d")).toBe(10_001);
    expect(tree.status().map(({ path }) => path)).toEqual(["d/a", "d/b"]);
    expect([tree.isFolder("d"), tree.changedBytes]).toEqual([false, 0]);
  });

  test("edits a text that occurs once, and names the lines of several", async () => {
    const tree = treeOf({ "a.ts": "let a = 1;\nlet b = 2;\nlet a = 1;\n" });
    await expect(tree.edit("a.ts", { before: "let a = 1;", after: "" })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("2 times, in the lines 1, 3"),
    });
    await expect(tree.edit("a.ts", { before: "let c", after: "" })).rejects.toThrow("does not contain");
    expect(await tree.edit("a.ts", { before: "b = 2", after: "b = $&" })).toMatchObject({
      line: 2,
      count: 1,
    });
    expect(await tree.edit("a.ts", { before: "let a", after: "const a", all: true })).toMatchObject({
      count: 2,
    });
    expect(decode(await tree.read("a.ts"))).toBe("const a = 1;\nlet b = $&;\nconst a = 1;\n");
  });

  test("TREE-1 links resolve inside the root", async () => {
    const tree = treeOf({
      ...{ "lib/x.ts": "x", here: ["lib", "120000"], "deep/up": ["../lib/x.ts", "120000"] },
      ...{ out: ["../secret", "120000"], far: ["/etc/passwd", "120000"], loop: ["loop", "120000"] },
    });
    expect(decode(await tree.read("here/x.ts"))).toBe("x");
    expect(decode(await tree.read("deep/up"))).toBe("x");
    expect(await tree.write("here/new.ts", encode("n"))).toBe("lib/new.ts");
    await expect(tree.read("loop")).rejects.toMatchObject({ code: "INVALID_INPUT" });
    for (const each of ["out", "far", "out/a"])
      await expect(tree.read(each), each).rejects.toMatchObject(SANDBOX);
    await tree.remove("here");
    expect(tree.paths()).toContain("lib/x.ts");
  });

  test("TREE-1 no path leaves the root", () => {
    for (const each of [
      "../a",
      "a/../../b",
      "/etc/passwd",
      "a//b",
      ".git/config",
      "a/.GIT/x",
      "a\\b",
      "a\0b",
      "/workspace/../x",
    ])
      expect(() => treePath(each), each).toThrow();
    for (const [given, expected] of [
      ["./a", "a"],
      ["/workspace/a/b", "a/b"],
      ["/workspace", ""],
      [".", ""],
      ["a/", "a"],
      ["/workspaces", null],
    ] as const) {
      if (expected === null) expect(() => treePath(given)).toThrow();
      else expect(treePath(given)).toBe(expected);
    }
    fc.assert(
      fc.property(fc.string(), (given) => {
        try {
          const found = treePath(given);
          expect(found.startsWith("/")).toBe(false);
          expect(found.split("/")).not.toContain("..");
        } catch (error) {
          expect(error).toMatchObject({
            code: expect.stringMatching(/^(?:INVALID_INPUT|PERMISSION_DENIED)$/),
          });
        }
      }),
    );
    for (const each of ["..", "../a", "a/../../b", "/etc/passwd", "/workspace/../x", "//x"])
      expect(() => treePath(each), each).toThrow(expect.objectContaining(SANDBOX));
    for (const each of ["a/../b", ".git/config", "a\\..\\..\\b"])
      expect(() => treePath(each), each).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
  });

  test("E26 TREE-5 a tree without sensitive files neither lists nor opens them, by any name", async () => {
    const secret = "KEY=secret\n";
    const files = { ".env": secret, "a/.Env.local": secret, "b/x.pem": secret, ID_RSA: secret };
    const others = { ".env.example": "KEY=\n", "a/env": "x\n", "keys.ts": "x\n" };
    const link = { link: [".env", "120000"], "a/up": ["..", "120000"], "b/id": ["x.pem", "120000"] } as const;
    const whole = treeOf({ ...files, ...others, ...link });
    const tree = whole.without(sensitiveFiles());
    const paths = [...Object.keys(others), ...Object.keys(link)].sort();
    expect(tree.paths()).toEqual(paths);
    for (const path of [...Object.keys(files), "link", "a/up/.env", "b/id", "a/up/b/id"]) {
      await expect(tree.read(path), path).rejects.toMatchObject(SENSITIVE);
      await expect(tree.write(path, encode(secret)), path).rejects.toMatchObject(SENSITIVE);
      await expect(tree.edit(path, { before: "KEY", after: "x" }), path).rejects.toMatchObject(SENSITIVE);
      if (path in files) await expect(tree.remove(path), path).rejects.toMatchObject(SENSITIVE);
    }
    for (const path of ["new.key", "a/up/.env.production", "c/id_ed25519"])
      await expect(tree.write(path, encode("x")), path).rejects.toMatchObject(SENSITIVE);
    expect((await searchTree(tree, { query: "secret", limit: 9 })).matches).toEqual([]);
    await expect(searchTree(tree, { query: "secret", path: ".env", limit: 9 })).rejects.toMatchObject(
      SENSITIVE,
    );
    await whole.write(".env", encode("KEY=other\n"));
    await whole.write("a/env", encode("y\n"));
    const { diff } = await treeDiff(tree, whole.without(sensitiveFiles()));
    expect([diff.includes("a/env"), diff.includes("KEY")]).toEqual([true, false]);
    expect(decode(await tree.read(".env.example"))).toBe("KEY=\n");
    expect(tree.status()).toEqual([]);
  });

  test("E26 TREE-5 own globs replace the default, and an invalid glob is refused", () => {
    const isSensitive = sensitiveFiles(["secrets/**"]);
    expect(["secrets/a/b", "secrets", ".env", "x/secrets/a"].map(isSensitive)).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(() => sensitiveFiles(["/secrets/**"])).toThrow("Must be a glob from the root");
  });

  test("TREE-1 a long target of a link, and a path with many folders after links, are refused", async () => {
    const links = {
      long: "a/".repeat(2_048),
      deep: "d/".repeat(500),
      "d/x": "",
    };
    const tree = treeOf({ "d/x": "" });
    for (const [path, target] of Object.entries(links))
      if (target !== "") await tree.put(path, { content: encode(target), mode: "120000" });
    await expect(tree.read("long")).rejects.toThrow("no text of at most 4095 bytes");
    await expect(tree.read(`deep/${"e/".repeat(400)}f`)).rejects.toThrow("more than 512 folders");
  });

  test("TREE-2 an edit of all places checks the size before it makes the text", async () => {
    const tree = treeOf({ "a.txt": "a".repeat(100_000) });
    const edit = tree.edit("a.txt", { before: "a", after: "b".repeat(1_000_000), all: true });
    await expect(edit).rejects.toMatchObject({ code: "TOO_LARGE" });
    expect(tree.status()).toEqual([]);
  });

  test("a search refuses a pattern with many steps, and bounds the bytes for the others", async () => {
    const line = `${"ab".repeat(500)}\n`;
    const tree = treeOf(
      Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`${n}.txt`, line.repeat(100)])),
    );
    const find = (query: string) => searchTree(tree, { query, isRegex: true, limit: 1 });
    await expect(find("([ab]{0,1000})[cd]")).rejects.toThrow("too many steps");
    expect((await find("([ab]{0,90})[cd]")).cut).toMatch(
      /after \d+ bytes. Name a folder, or search for a text/,
    );
    expect(await find("abd")).toEqual({ matches: [] });
  });

  test("finds texts and regular expressions", async () => {
    const tree = treeOf({ "a.ts": "one\nTwo\n", "d/b.ts": "two three\n", "d/bin": "two\0" });
    expect((await searchTree(tree, { query: "two", limit: 10 })).matches).toEqual([
      { path: "d/b.ts", line: 1, text: "two three" },
    ]);
    const found = await searchTree(tree, { query: "^t\\w+", isRegex: true, ignoreCase: true, limit: 1 });
    expect(found).toMatchObject({
      matches: [{ path: "a.ts", line: 2 }],
      cut: expect.stringContaining("more than 1"),
    });
    await expect(searchTree(tree, { query: "(", isRegex: true, limit: 1 })).rejects.toThrow("not valid");
    await expect(searchTree(tree, { query: "x", path: "none", limit: 1 })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });
});

describe("A65 the difference of two trees", () => {
  /** Writes the files of a tree to a folder. */
  async function checkOut(folder: string, tree: WorkingTree) {
    for (const each of tree.paths()) {
      const { content, mode } = await tree.file(each);
      mkdirSync(dirname(join(folder, each)), { recursive: true });
      if (mode === "120000") symlinkSync(decode(content), join(folder, each));
      else writeFileSync(join(folder, each), content);
      if (mode === "100755") chmodSync(join(folder, each), 0o755);
    }
  }

  const line = fc.constantFrom("a", "b", "c", "", "ä");
  const content = fc
    .tuple(fc.array(line, { maxLength: 30 }), fc.boolean())
    .map(([lines, isEnded]) => lines.join("\n") + (isEnded && lines.length > 0 ? "\n" : ""));
  const mode = fc.constantFrom<FileMode>("100644", "100755");
  const diffed = fc.dictionary(
    fc.constantFrom("a b.txt", 'q"t', "d/é.md", "run.sh"),
    fc.tuple(content, mode),
  );

  test("Git applies it to the one and gets the other", async () => {
    await fc.assert(
      fc.asyncProperty(diffed, diffed, async (before, after) => {
        const folder = mkdtempSync(join(tmpdir(), "tree-diff-"));
        try {
          await checkOut(folder, treeOf(before));
          const { diff: patch } = await treeDiff(treeOf(before), treeOf(after));
          if (patch !== "") {
            const { status, stderr } = spawnSync("git", ["apply", "-"], { cwd: folder, input: patch });
            expect(status, `${stderr}\n${patch}`).toBe(0);
          }
          for (const [each, [expected, expectedMode]] of Object.entries(after)) {
            expect(readFileSync(join(folder, each), "utf8")).toBe(expected);
            expect((statSync(join(folder, each)).mode & 0o100) !== 0).toBe(expectedMode === "100755");
          }
        } finally {
          rmSync(folder, { recursive: true });
        }
      }),
      { numRuns: 60 },
    );
  });

  test("shows links, binary files, and files without common lines", async () => {
    const many = (word: string) => Array.from({ length: 6_000 }, (_, index) => `${word} ${index}\n`).join("");
    const before = treeOf({ l: ["a", "120000"], "b.bin": "\0", big: many("one"), gone: "x\n" });
    const after = treeOf({ l: ["b", "120000"], "b.bin": "\0\0", big: many("two") });
    const { diff: patch } = await treeDiff(before, after);
    expect(patch).toContain("Binary files a/b.bin and b/b.bin differ");
    expect(patch).toContain("deleted file mode 100644\n--- a/gone\n+++ /dev/null\n");
    const folder = mkdtempSync(join(tmpdir(), "tree-diff-"));
    await checkOut(folder, before);
    const [link, big] = [
      await treeDiff(before, after, { path: "l" }),
      await treeDiff(before, after, { path: "big" }),
    ];
    const input = link.diff + big.diff;
    expect(spawnSync("git", ["apply", "-"], { cwd: folder, input }).status).toBe(0);
    expect(readlinkSync(join(folder, "l"))).toBe("b");
    expect(readFileSync(join(folder, "big"), "utf8")).toBe(many("two"));
    expect(treeChanges(before, after, "").map(({ path, change }) => `${path} ${change}`)).toEqual([
      ...["b.bin modified", "big modified", "gone deleted", "l modified"],
    ]);
    expect(treeChanges(after, before, "gone")).toEqual([{ path: "gone", change: "added" }]);
    rmSync(folder, { recursive: true });
  });
});

test("a person gets longer lists and differences than a model, and the changes since the branch began", async () => {
  const paths = Array.from({ length: 1_200 }, (_, index) => `${index}.txt`);
  const tree = treeOf(Object.fromEntries(paths.map((each) => [each, `${"word ".repeat(30)}\n`])));
  const read = (kind: "repo.tree" | "repo.diff", isForPerson: boolean) =>
    operate({ kind, input: {} }, tree, { head: treeOf({}), base: async () => treeOf({}), isForPerson });
  expect(await read("repo.tree", true)).toEqual({
    files: paths.toSorted(),
    changes: paths.toSorted().map((path) => ({ path, change: "added" })),
  });
  expect(await read("repo.tree", false)).toEqual({
    files: paths.toSorted().slice(0, 1_000),
    cut: "200 more files are left out. Name a folder.",
  });
  const { diff, ...rest } = await read("repo.diff", true);
  expect(rest).toEqual({});
  const short = await read("repo.diff", false);
  expect(String(diff).startsWith(String(short.diff))).toBe(true);
  expect(short.cut).toBeDefined();
});

test("A65 a difference reads no files after its limit, and shows large files by their names", async () => {
  const names = Array.from({ length: 20 }, (_, index) => `f${index}`).sort();
  const read: string[] = [];
  const base = new Map(names.map((each) => [each, { oid: each, mode: "100644" }]));
  const head = new WorkingTree(base, async (oid) => {
    read.push(oid);
    return encode(`${oid}\n`);
  });
  const diffOf = (tree: WorkingTree, input: { path?: string } = {}) =>
    operate({ kind: "repo.diff", input }, tree, { head, base: async () => head, isForPerson: false });
  const many = head.fork();
  for (const each of names)
    await many.put(each, { content: encode(`${each} words\n`.repeat(6_000)), mode: "100644" });
  read.length = 0;
  const { diff, cut } = await diffOf(many);
  expect([read, cut]).toEqual([names.slice(0, 2), "The rest is left out. Name a file or a folder."]);
  expect(String(diff)).toHaveLength(100_000);

  const large = head.fork();
  await large.put("f0", filled(500_001));
  await large.put("f1", { content: encode("f1\n"), mode: "100755" });
  await large.put("new", filled(500_001));
  await large.put("small", filled(500_000, 10));
  await large.put("z", filled(1));
  expect(await diffOf(large, { path: "f0" })).toEqual({
    diff: "diff --git a/f0 b/f0\nBinary files a/f0 and b/f0 differ\n",
    cut: "The lines of files with more than 500000 bytes are left out.",
  });
  const all = await diffOf(large);
  expect(all.diff).toContain("diff --git a/f1 b/f1\nold mode 100644\nnew mode 100755\ndiff --git");
  expect(all.diff).toContain("Binary files /dev/null and b/new differ\n");
  expect(all.cut).toBe(
    "The lines of files with more than 500000 bytes are left out. The rest is left out. Name a file or a folder.",
  );
});
