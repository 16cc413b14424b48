/**
 * The measurement. Both systems have equal files and an equal history. The objects of Dramatis are in memory and its rows in Node's SQLite,
 * so the times leave out the network. Each time of `git` and `bash` has the start of a process.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { operate } from "../../src/agents/workspace/core/operations.ts";
import { WorkingTree } from "../../src/agents/workspace/core/working-tree.ts";
import { embeddedShell } from "../../src/agents/workspace/shell/shell.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import { AUTHOR, changes, gitFolder, gitWorld } from "../../test/support/git-worlds.ts";

const [FILES, COMMITS, ROUNDS] = [10_000, 10_000, 5];
const IMPORTED = "imported";

export interface Measured {
  system: "dramatis" | "git and bash";
  metric: string;
  unit: "ms" | "kB";
  samples: number[];
}

/** Writes the history as `git fast-import` reads it: a commit with all files, and commits that change one file each. */
function history(): string {
  const parts: string[] = [];
  const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`;
  for (let n = 0; n < COMMITS; n++) {
    parts.push(
      `commit refs/heads/main\ncommitter Ada <ada@example.com> ${1_000_000 + n} +0000\n${data(`Commit ${n}`)}`,
    );
    if (n > 0) parts.push(`M 100644 inline ${pathOf(n % FILES)}\n${data(contentOf(n % FILES, n))}`);
    else
      for (let at = 0; at < FILES; at++)
        parts.push(`M 100644 inline ${pathOf(at)}\n${data(contentOf(at, 0))}`);
  }
  return parts.join("");
}

const pathOf = (n: number) => `src/part${n % 100}/file${n}.ts`;
const contentOf = (n: number, version: number) =>
  `// Version ${version}\n${Array.from({ length: 20 }, (_, line) => `export const value${line} = ${n * line};\n`).join("")}`;

export async function measure(): Promise<Measured[]> {
  using folder = gitFolder();
  const { git, pipe, path } = folder;
  git("init", "--quiet", "--initial-branch=main");
  pipe(history(), "fast-import", "--quiet");
  git("checkout", "--quiet", "main");
  git("repack", "-adfq", "--depth=50");
  git("bundle", "create", "--quiet", IMPORTED, "--all");
  const world = await gitWorld();
  const rows = new Map<string, Measured>();
  const note = (system: Measured["system"], metric: string, unit: Measured["unit"], sample: number) => {
    const key = `${system}/${metric}`;
    const row = rows.get(key) ?? { system, metric, unit, samples: [] };
    rows.set(key, row);
    row.samples.push(sample);
  };
  const time = async <Value>(
    system: Measured["system"],
    metric: string,
    work: () => Value | Promise<Value>,
  ) => {
    const from = performance.now();
    const value = await work();
    note(system, metric, "ms", performance.now() - from);
    return value;
  };
  const both = async (metric: string, ours: () => unknown, theirs: () => unknown) => {
    await time("dramatis", metric, ours);
    await time("git and bash", metric, theirs);
  };
  const bundle = readFileSync(join(path, IMPORTED));
  await both(
    "import of the bundle",
    () => world.repository.importBundle(bundle),
    () => git("clone", "--quiet", "--bare", IMPORTED, "copy"),
  );
  for (let round = 0; round < ROUNDS; round++) {
    const file = `src/part1/new${round}.ts`;
    const repository = world.open();
    const head = (await repository.head("main")) ?? "";
    const base = await time("dramatis", "list of all files", () => repository.tree(head));
    await time("git and bash", "list of all files", () => git("ls-tree", "-r", "HEAD"));
    const tree = new WorkingTree(base, (oid) => repository.blob(oid));
    const before = tree.fork();
    const sides = { head: before, base: async () => before, isForPerson: false };
    const one = pathOf(round * 7);
    await both(
      "read of a file",
      () => operate({ kind: "repo.read", input: { path: one } }, tree, sides),
      () => git("show", `HEAD:${one}`),
    );
    await both(
      "search in a folder of 100 files",
      () => operate({ kind: "repo.search", input: { query: "value7 = 49", path: "src/part7" } }, tree, sides),
      () => git("grep", "value7 = 49", "--", "src/part7"),
    );
    await both(
      "write of a file and difference",
      async () => {
        await operate({ kind: "repo.write", input: { path: file, content: "new\n" } }, tree, sides);
        await operate({ kind: "repo.diff", input: {} }, tree, sides);
      },
      () => {
        folder.write(file, "new\n");
        git("add", "--intent-to-add", file);
        git("diff");
      },
    );
    const stored = await bytesOf(world.objects);
    await both(
      "commit of a file",
      () =>
        repository.commit("main", head, {
          ...{ parents: [head], changes: changes({ [file]: "new\n" }), author: AUTHOR },
          ...{ message: "New", at: 2_000_000_000 + round },
        }),
      () => {
        git("add", file);
        git("commit", "--quiet", "-m", "New");
      },
    );
    note("dramatis", "stored for a commit", "kB", ((await bytesOf(world.objects)) - stored) / 1_000);
    await both(
      "newest 50 commits",
      async () => repository.log((await repository.head("main")) ?? "", 50),
      () => git("log", "-50"),
    );
    await both(
      "command `echo` in a shell",
      () =>
        embeddedShell.exec(smallTree(), "echo hello", {
          workspace: { tenant: "local", id: "conv:bench" },
          timeoutMs: 10_000,
          signal: new AbortController().signal,
        }),
      () => execFileSync("bash", ["-c", "echo hello"]),
    );
    await both(
      "export for a clone",
      () => repository.exportBundle(),
      () => git("bundle", "create", "--quiet", "exported", "--all"),
    );
  }
  return [...rows.values()];
}

/** Returns the bytes of all objects. */
async function bytesOf(objects: ObjectStore): Promise<number> {
  const heads = (await objects.list("", 1_000)).map((key) => objects.head(key));
  return (await Promise.all(heads)).reduce((sum, head) => sum + (head?.size ?? 0), 0);
}

function smallTree(): WorkingTree {
  return new WorkingTree(new Map(), async () => new Uint8Array());
}
