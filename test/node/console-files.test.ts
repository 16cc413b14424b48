/** The console's pure parts for work on code: addresses, differences, trees, calls of tools, and decisions of a policy. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Commit, messageParts, ownCommits, ownerOfBranch } from "../../app/src/files/commits.ts";
import { fileTree, firstFile, type TreeFolder } from "../../app/src/files/file-tree.ts";
import { filePreview, toolView } from "../../app/src/files/tool-views.ts";
import { type DiffFile, parseDiff, replacedText } from "../../app/src/files/unified-diff.ts";
import { cloneCommand } from "../../app/src/format.ts";
import { entryPreview } from "../../app/src/inspector/incident-texts.ts";
import { changeOf, draftOf, listOf } from "../../app/src/projects/settings-draft.ts";
import {
  artifactsChoice,
  artifactsPath,
  filesChoice,
  filesPath,
  filesViews,
  projectPath,
  routeOf,
} from "../../app/src/route.ts";
import { treeDiff } from "../../src/agents/workspace/core/diff.ts";
import { WorkingTree } from "../../src/agents/workspace/core/working-tree.ts";
import { PROVIDERS } from "../../src/model/profile.ts";
import { type Project, projectChange } from "../../src/protocol/projects.ts";

const name = fc.string({ minLength: 1, unit: "grapheme" });

it("FILESPAGE-1 each view, repository and file of a conversation or a run has its own address, whatever the names", () => {
  const owner = fc.oneof(fc.record({ conversation: name }), fc.record({ run: name }));
  fc.assert(
    fc.property(owner, fc.nat(), name, name, name, (owner, n, repo, path, id) => {
      const views = filesViews(owner);
      const view = views[n % views.length];
      expect(routeOf(filesPath(owner, view))).toEqual({ page: "files", owner, view });
      const route = routeOf(filesPath(owner, view, { repo, path, against: "head" }));
      expect(route).toMatchObject({ page: "files", owner, view });
      const search = route.page === "files" ? (route.search ?? "") : "";
      expect(filesChoice(search)).toEqual({ repo, path, against: "head" });
      expect(routeOf(projectPath(id))).toEqual({ page: "project", id });
      for (const view of ["secrets", "settings"] as const)
        expect(routeOf(projectPath(id, view))).toEqual({ page: "project", id, view });
      const artifacts = routeOf(artifactsPath(id, { q: repo, type: repo, path }));
      expect(artifacts).toMatchObject({ page: "artifacts", id });
      const chosen = artifacts.page === "artifacts" ? (artifacts.search ?? "") : "";
      expect(artifactsChoice(chosen)).toEqual({ q: repo, type: repo, path });
    }),
  );
  expect(routeOf("/projects")).toEqual({ page: "projects" });
  expect(filesChoice("?against=base")).toEqual({ repo: undefined, path: undefined, against: undefined });
  for (const path of ["/runs/a/files/merge", "/c/a/files/x", "/c/a/files/merge/b", "/projects/a/b"])
    expect(routeOf(path)).toEqual({ page: "missing", path });
});

const line = fc.constantFrom(
  "a",
  "b",
  "",
  "-- a",
  "++ b",
  "@@ -1 +1 @@",
  "diff --git a/x b/x",
  "\\ note",
  "\tc  ",
);
const content = fc.option(
  fc
    .tuple(fc.array(line, { maxLength: 20 }), fc.boolean())
    .map(([lines, isEnded]) => lines.join("\n") + (isEnded ? "\n" : "")),
);
const path = fc.constantFrom("a", "d/b c", 'd/"q"', "日/本", "new file");

function treeOf(files: Record<string, string | null>): WorkingTree {
  const present = Object.entries(files).flatMap(([each, text]) =>
    text === null ? [] : [[each, { oid: `${each}\0${text}`, mode: "100644" }] as const],
  );
  return new WorkingTree(new Map(present), async (oid) => new TextEncoder().encode(oid.split("\0")[1]));
}

const linesOf = (text: string | null | undefined) => {
  const lines = (text ?? "").split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
};

describe("differences", () => {
  it("DIFFVIEW-1 the lines of a difference have the numbers and the texts of the two files", async () => {
    const files = fc.dictionary(path, content);
    await fc.assert(
      fc.asyncProperty(files, files, async (before, after) => {
        const parsed = parseDiff((await treeDiff(treeOf(before), treeOf(after))).diff);
        const differing = [...new Set([...Object.keys(before), ...Object.keys(after)])]
          .filter((each) => (before[each] ?? null) !== (after[each] ?? null))
          .sort();
        expect(parsed.map((file) => file.path)).toEqual(differing);
        for (const file of parsed) {
          const [old, now] = [linesOf(before[file.path]), linesOf(after[file.path])];
          const [removed, added] = [new Set<number>(), new Set<number>()];
          for (const each of file.hunks.flatMap(({ lines }) => lines)) {
            if (each.kind === "note") continue;
            if (each.kind !== "added") expect(old[(each.old ?? 0) - 1]).toBe(each.text);
            if (each.kind !== "removed") expect(now[(each.now ?? 0) - 1]).toBe(each.text);
            if (each.kind === "removed") removed.add(each.old ?? 0);
            if (each.kind === "added") added.add(each.now ?? 0);
          }
          expect([removed.size, added.size]).toEqual([file.removed, file.added]);
          const rest = (lines: string[], gone: Set<number>) =>
            lines.filter((_, index) => !gone.has(index + 1));
          expect(rest(old, removed)).toEqual(rest(now, added));
        }
      }),
    );
  });

  it("DIFFVIEW-2 the beginning of a difference has the lines before the cut", async () => {
    const texts = (file: DiffFile) => file.hunks.flatMap(({ lines }) => lines.map(({ text }) => text));
    await fc.assert(
      fc.asyncProperty(content, content, fc.nat(), async (before, after, cut) => {
        const { diff } = await treeDiff(treeOf({ a: before }), treeOf({ a: after }));
        const [whole] = parseDiff(diff);
        const [part] = parseDiff(diff.slice(0, diff.length === 0 ? 0 : cut % diff.length));
        if (part === undefined || whole === undefined) return;
        const shown = texts(part).slice(0, -1);
        expect(shown).toEqual(texts(whole).slice(0, shown.length));
      }),
    );
  });

  it("binary files and changed modes have no lines, and a replaced text has only the lines that differ", () => {
    const diff = [
      "diff --git a/logo.png b/logo.png",
      "new file mode 100644",
      "Binary files /dev/null and b/logo.png differ",
      "diff --git a/run b/run",
      "old mode 100644",
      "new mode 100755",
      "",
    ].join("\n");
    expect(parseDiff(diff)).toEqual([
      { path: "logo.png", change: "added", isBinary: true, added: 0, removed: 0, hunks: [] },
      {
        path: "run",
        change: "modified",
        isBinary: false,
        modes: "100644 → 100755",
        added: 0,
        removed: 0,
        hunks: [],
      },
    ]);
    expect(replacedText("a.ts", "one\ntwo\nfour", "one\nthree\nthree\nfour", 7)).toMatchObject({
      ...{ added: 2, removed: 1 },
      hunks: [
        {
          lines: [
            { kind: "same", text: "one", old: 7, now: 7 },
            { kind: "removed", text: "two", old: 8 },
            { kind: "added", text: "three", now: 8 },
            { kind: "added", text: "three", now: 9 },
            { kind: "same", text: "four", old: 9, now: 10 },
          ],
        },
      ],
    });
  });
});

describe("trees", () => {
  it("FILETREE-1 FILETREE-2 a tree has each path once, and no folder that has only a folder", () => {
    const segment = fc.constantFrom("a", "b", "a-b", "src");
    const paths = fc.array(
      fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => [...parts, "f.ts"].join("/")),
    );
    fc.assert(
      fc.property(paths, (given) => {
        const found: string[] = [];
        const visit = ({ path: at, folders, files }: TreeFolder, isRoot: boolean) => {
          for (const file of files) {
            expect(file.path).toBe(at === "" ? file.name : `${at}/${file.name}`);
            found.push(file.path);
          }
          if (!isRoot) expect(folders.length !== 1 || files.length > 0).toBe(true);
          const names = folders.map((folder) => folder.name);
          expect(names).toEqual([...new Set(names)].sort());
          for (const folder of folders) visit(folder, false);
        };
        visit(fileTree(given), true);
        expect(found.sort()).toEqual([...new Set(given)].sort());
      }),
    );
  });
});

describe("commits", () => {
  const commit = (oid: string): Commit => ({
    oid,
    parents: [],
    message: oid,
    author: "ada",
    time: "2026-05-01T10:00:00.000Z",
  });
  it("the commits of a branch end at its base", () => {
    const commits = ["c", "b", "a"].map(commit);
    expect(ownCommits(commits, "a").map(({ oid }) => oid)).toEqual(["c", "b"]);
    expect(ownCommits(commits, "c")).toEqual([]);
    expect(ownCommits(commits, null)).toEqual(commits);
    expect(messageParts("Fix it\n\nFor all.\n")).toEqual({ title: "Fix it", body: "For all." });
    expect(ownerOfBranch("dramatis/conv-conv_01")).toEqual({ conversation: "conv_01" });
    expect(ownerOfBranch("dramatis/run-run_01")).toEqual({ run: "run_01" });
    expect(ownerOfBranch("feature/convert")).toBeUndefined();
  });
});

describe("calls of tools", () => {
  it("commands, differences and edits have views of their own; a call of another form has none", () => {
    const input = { command: "ls", timeoutMs: 5 };
    const result = { exitCode: 2, stdout: "a\n", stderr: "", changed: ["a"], isCut: true };
    expect(toolView({ name: "shell_exec", input, result })).toEqual({
      type: "terminal",
      command: "ls",
      result,
    });
    expect(toolView({ name: "shell_exec", input })).toEqual({ type: "terminal", command: "ls" });
    expect(toolView({ name: "shell_start", input, result })).toMatchObject({ type: "terminal", result });
    expect(toolView({ name: "shell_start", input, result: { ...result, conflicts: ["a"] } })).toBeUndefined();
    expect(toolView({ name: "shell_exec", input, result: "done" })).toBeUndefined();
    expect(toolView({ name: "shell_exec", input: { script: "ls" }, result })).toBeUndefined();
    expect(toolView({ name: "repo_diff", input: {}, result: { diff: "", cut: "More." } })).toEqual({
      ...{ type: "diff", diff: "", cut: "More." },
    });
    expect(
      toolView({ name: "repo_edit", input: { path: "a", before: "x", after: "y" }, result: { line: 3 } }),
    ).toMatchObject({
      type: "edit",
      file: {
        path: "a",
        hunks: [
          {
            lines: [
              { text: "x", old: 3 },
              { text: "y", now: 3 },
            ],
          },
        ],
      },
    });
    const changes = [{ path: "a", change: "added" }];
    expect(toolView({ name: "repo_commit", input: {}, result: { commit: "c0ffee", changes } })).toEqual({
      ...{ type: "commit", commit: "c0ffee", changes },
    });
    expect(toolView({ name: "repo_commit", input: {}, result: { commit: null, changes } })).toBeUndefined();
    expect(toolView({ name: "repo_read", input: { path: "a" }, result: {} })).toBeUndefined();
    expect(filePreview({ name: "shell_exec", input })).toBe("ls");
    expect(filePreview({ name: "repo_diff", input: {} })).toBeUndefined();
    expect(filePreview({ name: "search", input: { query: "a" } })).toBeUndefined();
  });
});

it("E26 H8 the entry of a decision names the rule, its reason and the untrusted origins in words", () => {
  const data = { rule: "no-refunds", reason: "Refunds are for people.", taint: ["tool", "document"] };
  expect(entryPreview({ type: "policy.denied", data })).toBe(
    'Denied by the rule "no-refunds". Refunds are for people. The call follows untrusted content: a result of a tool, a document.',
  );
  expect(entryPreview({ type: "policy.asked", data: {} })).toBe("Asks a person.");
  expect(entryPreview({ type: "policy.allowed", data: { rule: "notes" } })).toBe(
    'Allowed by the rule "notes".',
  );
  expect(entryPreview({ type: "tool.failed", data })).toBe("Refunds are for people.");
});

it("a clone of a repository sends a token if the server needs one", () => {
  const of = { project: "shop", repo: "my web" };
  const command = (needsToken: boolean) => cloneCommand("https://shop.example", { ...of, needsToken });
  expect(command(false)).toBe("git clone https://shop.example/git/shop/my%20web");
  expect(command(true)).toBe(
    'git -c http.extraHeader="Authorization: Bearer $TOKEN" clone https://shop.example/git/shop/my%20web',
  );
});

const settings = fc.record(
  {
    name: fc.constantFrom("Shop", "a b"),
    modelProfileId: fc.constantFrom("demo/fast", "demo/slow"),
    allowedModelProviders: fc
      .subarray([...PROVIDERS], { minLength: 1 })
      .chain((list) => fc.shuffledSubarray(list, { minLength: list.length })),
    allowedMcpServers: fc.uniqueArray(fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,9}$/)),
    limits: fc.record(
      { maxConcurrentRuns: fc.nat(1_000_000), maxModelCallsPerHour: fc.nat(1_000_000) },
      { requiredKeys: [] },
    ),
    budget: fc.record({ tokens: fc.nat() }),
  },
  { requiredKeys: [] },
);

/** Applies a merge patch. */
function patched(target: object, patch: object): object {
  const merged: Record<string, unknown> = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = isObject(value) ? patched(isObject(merged[key]) ? merged[key] : {}, value) : value;
  }
  return merged;
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

it("SETTINGSFORM-1 SETTINGSFORM-2 a change of the form's drafts leads from the settings of one draft to those of the other, and is a valid request", () => {
  const projectOf = (given: object): Project => ({ id: "shop", createdAt: "", repositories: [], ...given });
  fc.assert(
    fc.property(settings, settings, (from, to) => {
      const [before, after] = [draftOf(projectOf(from)), draftOf(projectOf(to))];
      expect(changeOf(before, before)).toBeUndefined();
      const change = changeOf(before, after);
      if (change === undefined) return expect(after).toEqual(before);
      expect(projectChange.parse(change)).toEqual(change);
      expect(draftOf(projectOf(patched(from, change)))).toEqual(after);
    }),
  );
  expect(changeOf(draftOf(projectOf({ name: "Shop" })), draftOf(projectOf({})))).toEqual({ name: null });
  expect(listOf(" github,linear\ngithub ")).toEqual(["github", "linear"]);
});

it("FILETREE-3 the page of files begins with the first changed file that is not deleted, or with the README of the top folder", () => {
  const paths = ["docs/README.md", "a.ts", "ReadMe.md"];
  const changes = (...all: [string, "added" | "modified" | "deleted"][]) =>
    new Map(all.map(([path, change]) => [path, { change }]));
  expect(firstFile(paths, changes(["gone.ts", "deleted"], ["a.ts", "modified"]))).toBe("a.ts");
  expect(firstFile(paths, changes(["gone.ts", "deleted"]))).toBe("ReadMe.md");
  expect(firstFile(["docs/README.md", "a.ts"], changes())).toBeUndefined();
});
