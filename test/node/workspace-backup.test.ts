/** The export and the import of a workspace, with stops in between. */
import { describe, expect, test } from "vitest";
import { WorkspaceRuntime } from "../../src/agents/workspace/runtime.ts";
import { embeddedShell } from "../../src/agents/workspace/shell/shell.ts";
import { D1Repositories } from "../../src/d1/repositories.ts";
import { Projects } from "../../src/git/projects.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { WorkspaceKind } from "../../src/protocol/workspace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { ADDRESS, AUTHOR, changes, gitWorld } from "../support/git-worlds.ts";

/** Its caller stops after a branch has moved. */
class StoppingRepositories extends D1Repositories {
  override async move(...moves: Parameters<D1Repositories["move"]>): Promise<never> {
    await super.move(...moves);
    throw new Error("The actor has stopped.");
  }
}

const OWN = "dramatis/conv-conv_1";

/** A workspace whose project has one commit, and the saved state of a workspace with this commit on its branch. */
async function workspaceWorld() {
  const { repository, rows, objects, ids, clock, database } = await gitWorld();
  const { tenant, project, repo } = ADDRESS;
  const commit = async (branch: string, from: string | null, files: Record<string, string>) => {
    const parents = from === null ? [] : [from];
    const input = { parents, message: "Change", author: AUTHOR, at: 1_000, changes: changes(files) };
    const made = await repository.commit(branch, from === null || branch !== "main" ? null : from, input);
    if (made === "moved") throw new Error("The branch has moved.");
    return made.oid;
  };
  const main = await commit("main", null, { a: "1" });
  const own = new NodeSqlDatabase();
  const stores = { database: own, keyValue: new NodeKeyValue(own) };
  const started = (of: D1Repositories = rows) =>
    new WorkspaceRuntime({
      ...{ stores, clock, shell: embeddedShell, branchPrefix: "dramatis", isSensitive: () => false },
      ...{
        projects: () => new Projects({ rows: of, objects, ids }),
        tenant: () => tenant,
        id: () => "conv-conv_1",
        arm: async () => undefined,
        operations: { report: async () => true, complete: async () => undefined },
      },
    });
  const stopping = () => started(new StoppingRepositories(database, clock));
  const branchOf = (hasBranch: boolean) => ({
    project,
    repositories: [{ repo, base: main, head: main, hasBranch }],
  });
  const place = { project };
  const perform = (runtime: WorkspaceRuntime, kind: WorkspaceKind, input: JsonObject) =>
    runtime.perform(place, { kind, input, key: crypto.randomUUID(), author: AUTHOR });
  const write = async (runtime: WorkspaceRuntime, path: string, content = "2") =>
    unwrap(await perform(runtime, "repo.write", { path, content }));
  const viewOf = async (runtime: WorkspaceRuntime) => unwrap(await runtime.view(place));
  const restoreFile = async (runtime: WorkspaceRuntime, path: string) =>
    runtime.restoreFile({ repo, path, file: { mode: "100644", content: new Uint8Array(1) } });
  const others = async () => (await repository.branches()).filter(({ name }) => name !== "main");
  return {
    ...{ started, stopping, branchOf, perform, write, viewOf, restoreFile },
    ...{ repository, main, commit, others },
  };
}

describe("WORKBACKUP-1 a restoration that stops", () => {
  test("after it has created a branch leaves no branch to the next import", async () => {
    const { started, stopping, branchOf, main, others } = await workspaceWorld();
    expect((await stopping().restore(branchOf(true))).ok).toBe(false);
    expect(await others()).toEqual([{ name: OWN, oid: main }]);
    unwrap(await started().restore(null));
    expect(await others()).toEqual([]);
  });

  test("leaves the branch of the same name that another writer has made, at another commit or at the same", async () => {
    for (const isSame of [false, true]) {
      const { started, stopping, branchOf, repository, main, commit, others } = await workspaceWorld();
      if (isSame) await repository.createBranch(OWN, main);
      else await commit(OWN, main, { b: "2" });
      const before = await others();
      expect((await stopping().restore(branchOf(true))).ok).toBe(false);
      unwrap(await started().restore(null));
      expect([before.length, await others()]).toEqual([1, before]);
    }
  });

  test("leaves a branch that another writer has moved", async () => {
    const { started, stopping, branchOf, repository, main, commit, others } = await workspaceWorld();
    expect((await stopping().restore(branchOf(true))).ok).toBe(false);
    await repository.deleteBranch(OWN);
    await commit(OWN, main, { b: "2" });
    const moved = await others();
    unwrap(await started().restore(null));
    expect(await others()).toEqual(moved);
  });
});

test("WORKBACKUP-1 a workspace with more than 500 files is saved in pieces", async () => {
  const { started, branchOf, restoreFile } = await workspaceWorld();
  const runtime = started();
  unwrap(await runtime.restore(branchOf(false)));
  const paths = Array.from({ length: 501 }, (_, n) => `file-${n}`);
  for (const path of paths) unwrap(await restoreFile(runtime, path));
  const first = unwrap(await runtime.saved({ from: 0 }));
  const second = unwrap(await runtime.saved({ from: first?.next ?? 0 }));
  expect([first?.files.length, second?.files.length, second?.next]).toEqual([500, 1, undefined]);
  const saved = [first, second].flatMap((piece) => piece?.files.map(({ path }) => path) ?? []);
  expect(saved.sort()).toEqual(paths.sort());
});

test("WORKBACKUP-1 WORKSPACE-4 a commit that a crash interrupted is in the saved state", async () => {
  const { started, stopping, perform, write, others } = await workspaceWorld();
  await write(started(), "b");
  expect((await perform(stopping(), "repo.commit", { message: "Add b" })).ok).toBe(false);
  const [branch] = await others();
  expect(unwrap(await started().saved({ from: 0 }))).toMatchObject({
    workspace: { repositories: [{ head: branch?.oid, hasBranch: true }] },
    files: [],
  });
});

test("WORKBACKUP-1 a restoration forgets the files of before", async () => {
  const { started, branchOf, write, viewOf, restoreFile } = await workspaceWorld();
  const runtime = started();
  await write(runtime, "b");
  unwrap(await runtime.restore(branchOf(false)));
  expect((await viewOf(runtime)).repositories).toMatchObject([{ changes: [] }]);
  unwrap(await runtime.restore(branchOf(false)));
  expect(unwrap(await restoreFile(runtime, "x"))).toBe(true);
  unwrap(await runtime.restore(branchOf(false)));
  expect(unwrap(await restoreFile(runtime, "x/y"))).toBe(true);
});

test("FILESPAGE-2 the state of a workspace has another version after a second write to a file", async () => {
  const { started, write, viewOf } = await workspaceWorld();
  const runtime = started();
  await write(runtime, "b", "first");
  const { version, ...before } = await viewOf(runtime);
  await write(runtime, "b", "again");
  expect(await viewOf(runtime)).toEqual({ ...before, version: version + 1 });
});
