/** Repositories on Node's SQLite and in memory, and the `git` of this machine. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { D1Repositories } from "../../src/d1/repositories.ts";
import { GitRepository } from "../../src/git/git-repository.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { nodeD1 } from "../../src/ports/node/node-d1.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

export const AUTHOR = { name: "Ada", email: "ada@example.com" };
export const ADDRESS = { tenant: "acme", project: "shop", repo: "web" };

/** Returns a project with an empty repository, and a function that opens the repository again. */
export async function gitWorld() {
  const clock = new VirtualClock();
  const database = nodeD1(new NodeSqlDatabase());
  const rows = new D1Repositories(database, clock);
  const objects = new MemoryObjectStore();
  const ids = seededIds(1, clock);
  const { tenant, project, repo } = ADDRESS;
  await rows.createProject(tenant, { id: project, repositories: [{ id: repo, defaultBranch: "main" }] });
  const open = () => new GitRepository({ rows, objects, ids }, ADDRESS);
  return { clock, database, rows, objects, ids, open, repository: open() };
}

export function changes(files: Record<string, string | null>) {
  const encoder = new TextEncoder();
  return new Map(
    Object.entries(files).map(([path, text]) => [
      path,
      text === null ? null : { content: encoder.encode(text) },
    ]),
  );
}

/** Makes an empty folder, which disposing removes. `git` runs in it and returns its output; `pipe` gives it an input first. */
export function gitFolder() {
  const path = mkdtempSync(join(tmpdir(), "dramatis-git-"));
  const pipe = (input: string, ...args: string[]) =>
    execFileSync("git", ["-C", path, ...args], {
      encoding: "utf8",
      input,
      stdio: "pipe",
      env: { ...process.env, ...ENVIRONMENT },
      maxBuffer: 64 * 1_024 * 1_024,
    }).trim();
  const git = (...args: string[]) => pipe("", ...args);
  const read = (name: string) => readFileSync(join(path, name));
  const write = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(path, name), content);
    return join(path, name);
  };
  return {
    path,
    git,
    pipe,
    read,
    write,
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** No settings of this machine, and one author. */
const ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  ...{ GIT_AUTHOR_NAME: "Grace", GIT_AUTHOR_EMAIL: "grace@example.com" },
  ...{ GIT_COMMITTER_NAME: "Grace", GIT_COMMITTER_EMAIL: "grace@example.com" },
};
