/** The storage of a workspace, while its repositories are deleted and created. */
import { expect, test } from "vitest";
import { OpenRepositories } from "../../src/agents/workspace/open-repositories.ts";
import { WorkspaceStore } from "../../src/agents/workspace/store.ts";
import { Projects } from "../../src/git/projects.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { ADDRESS, gitWorld } from "../support/git-worlds.ts";

test("WORKSPACE-7 an operation that a deletion overtakes leaves no file in the new repository of the same id", async () => {
  const { rows, objects, ids, clock } = await gitWorld();
  const { tenant, project, repo } = ADDRESS;
  const database = new NodeSqlDatabase();
  const store = new WorkspaceStore({ database, keyValue: new NodeKeyValue(database), clock });
  store.create({ project, branch: "own" });
  const projects = new Projects({ rows, objects, ids });
  const repositories = new OpenRepositories(
    store,
    () => projects,
    () => tenant,
  );
  const old = await repositories.open(project);
  const changes = new Map([["a.txt", { mode: "100644" as const, content: new Uint8Array(1) }]]);
  const save = ({ branch }: typeof old, key: string) => store.save(branch, new Map(), changes, key, {});
  save(old, "op_1");
  await clock.advance(1);
  await projects.remove({ tenant, project });
  await rows.createProject(tenant, { id: project, repositories: [{ id: repo, defaultBranch: "main" }] });
  const fresh = await repositories.open(project);
  expect(fresh.branch.since).toBe(old.branch.since + 1);
  expect([store.changes(repo).size, fresh.tree.changes.size]).toEqual([0, 0]);
  expect(() => save(old, "op_2")).toThrow(expect.objectContaining({ code: "CONFLICT" }));
  expect([store.changes(repo).size, store.receipt("op_2")]).toEqual([0, undefined]);
  save(fresh, "op_2");
  // A commit in the old repository reopens it.
  repositories.reopen(old);
  expect(await repositories.open(project)).toBe(fresh);
});

test("ERASE-7 WORKSPACE-2 erasing a call spares calls with longer ids, and an hour has at most 500 results", async () => {
  const clock = new VirtualClock();
  const database = new NodeSqlDatabase();
  const store = new WorkspaceStore({ database, keyValue: new NodeKeyValue(database), clock });
  store.create({ project: "shop", branch: "own" });
  const branch = { repo: "app", since: 1, base: null, head: null, created: 0 };
  store.putBranch(branch);
  const save = (id: string) => store.save(branch, new Map(), new Map(), id, { id });
  for (const id of ["op_3/x", "op_30/x", "op_3-2/x"]) save(id);
  store.forget("op_3");
  expect(["op_3/x", "op_30/x", "op_3-2/x"].map((id) => store.receipt(id))).toEqual([
    undefined,
    { id: "op_30/x" },
    undefined,
  ]);
  for (let n = 0; n < 510; n++) save(`many_${n}/x`);
  expect([store.receipt("many_9/x"), store.receipt("many_10/x")]).toEqual([undefined, { id: "many_10/x" }]);
  await clock.advance(60 * 60 * 1_000 + 1);
  save("late/x");
  expect([store.receipt("many_460/x"), store.receipt("many_461/x")]).toEqual([
    undefined,
    { id: "many_461/x" },
  ]);
  const { version } = store;
  store.forget("late");
  save("later/x");
  expect(store.version).toBe(version + 1);
});
