/** The deletion of projects and repositories, with their objects, on D1 and R2. */
import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { ulid } from "ulid";
import { afterEach, expect, test, vi } from "vitest";
import { D1Repositories } from "../../src/d1/repositories.ts";
import { dramatis } from "../../src/dramatis.ts";
import { Projects } from "../../src/git/projects.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import { systemIds } from "../../src/ports/system.ts";
import { R2ObjectStore } from "../../src/ports/workers/r2-object-store.ts";
import { AUTHOR } from "../support/seeded-repository.ts";
import { ADMIN, get, MEMBER, send } from "./http-client.ts";
import { testLibrary } from "./library.ts";

const { tenant } = ADMIN;
const rows = new D1Repositories(env.DB);
const ports = { rows, objects: new R2ObjectStore(env.BUCKET), ids: systemIds };
const TABLES = ["git_packs", "git_refs", "repositories", "artifacts", "artifact_operations"];

async function ask(method: string, path: string, body?: object, principal = ADMIN): Promise<number> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  return (await send(`/api/projects${path}`, init, principal)).status;
}

/** Creates a project with the repositories `web` and `app`, a file in each, and an artifact. */
async function createProject(id: string, text = "a\n"): Promise<void> {
  expect(await ask("POST", "", { id, repositories: [{ id: "web" }, { id: "app" }] })).toBe(201);
  for (const repo of ["web", "app"])
    expect(await ask("PUT", `/${id}/repos/${repo}/files`, { files: { "a.txt": text } })).toBe(200);
  expect(await ask("PUT", `/${id}/artifact?path=a.md`, { content: "# A\n" })).toBe(200);
}

/** Returns the keys of the objects of a project. */
async function objectsOf(project: string, repo = ""): Promise<string[]> {
  const { objects } = await env.BUCKET.list({ prefix: `git/${tenant}/${project}/${repo}` });
  return objects.map(({ key }) => key);
}

/** Returns the number of the rows of a project. */
async function rowsOf(project: string): Promise<number> {
  const counts = TABLES.map((table) => `(SELECT COUNT(*) FROM ${table} WHERE tenant = ?1 AND project = ?2)`);
  const statement = `SELECT ${counts.join(" + ")} + (SELECT COUNT(*) FROM projects WHERE tenant = ?1 AND id = ?2)`;
  const [[count] = []] = await env.DB.prepare(statement).bind(tenant, project).raw<[number]>();
  return count ?? 0;
}

/** Makes the deletions of a project as old as `hours`. Returns the number of deletions. */
async function age(project: string, hours: number): Promise<number> {
  const statement =
    "UPDATE removed_repositories SET removed_at = removed_at - ?3 WHERE tenant = ?1 AND project = ?2";
  const { meta } = await env.DB.prepare(statement)
    .bind(tenant, project, hours * 3_600_000)
    .run();
  return meta.changes;
}

afterEach(() => void vi.restoreAllMocks());

test("PROJECT-1 REFS-4 a deleted repository and a deleted project leave no row and no object, and the neighbours stay", async () => {
  for (const id of ["gone", "gone-too"]) await createProject(id);
  const neighbour = [await rowsOf("gone-too"), await objectsOf("gone-too")];
  expect(await ask("DELETE", "/gone/repos/web", undefined, MEMBER)).toBe(403);
  expect(await ask("DELETE", "/gone", undefined, MEMBER)).toBe(403);
  expect(await ask("DELETE", "/gone", undefined, { ...ADMIN, tenant: "elsewhere" })).toBe(404);
  const refused = await send("/api/projects/gone/repos/artifacts", { method: "DELETE" });
  expect(await refused.json()).toMatchObject({
    ...{ status: 409, code: "CONFLICT" },
    detail: expect.stringContaining('delete the project "gone"'),
  });
  expect(await ask("DELETE", "/gone/repos/web")).toBe(204);
  expect(await objectsOf("gone", "web/")).toEqual([]);
  expect((await get("/api/projects/gone", ADMIN)).body).toMatchObject({
    repositories: [{ id: "app" }, { id: "artifacts" }],
  });
  expect((await get("/api/projects/gone/artifacts", ADMIN)).body).toMatchObject({
    artifacts: [{ path: "a.md" }],
  });
  expect(await ask("DELETE", "/gone/repos/web")).toBe(404);
  expect(await ask("GET", "/gone/repos/web/branches")).toBe(404);
  expect(await ask("DELETE", "/gone")).toBe(204);
  expect(await ask("DELETE", "/gone")).toBe(404);
  expect(await ask("PUT", "/gone/artifact?path=a.md", { content: "# B\n" })).toBe(404);
  expect([await rowsOf("gone"), await objectsOf("gone")]).toEqual([0, []]);
  expect([await rowsOf("gone-too"), await objectsOf("gone-too")]).toEqual(neighbour);
  // A new project of the same id begins empty.
  expect(await ask("POST", "", { id: "gone", repositories: [{ id: "web" }] })).toBe(201);
  expect((await get("/api/projects/gone/artifacts", ADMIN)).body).toMatchObject({ artifacts: [] });
  expect(await (await send("/api/projects/gone/repos/web/branches")).json()).toEqual({ branches: [] });
});

test("files that stay as they are make no commit, and a rewritten program stays executable", async () => {
  await createProject("same");
  const put = async (files: Record<string, string | null>) => {
    const init = { method: "PUT", body: JSON.stringify({ files }) };
    return (await send("/api/projects/same/repos/web/files", init)).json<{ oid: string }>();
  };
  const { repository } = await new Projects(ports).open({ tenant, project: "same", repo: "web" });
  const begin = (await repository.head("main")) ?? "";
  expect(await put({ "a.txt": "a\n" })).toEqual({ branch: "main", oid: begin });
  expect(await put({ "missing.txt": null, "a.txt": "a\n" })).toEqual({ branch: "main", oid: begin });
  const changes = new Map([["run.sh", { content: new Uint8Array(1), mode: "100755" as const }]]);
  const input = { changes, message: "Add a program", author: AUTHOR, at: 1_000, parents: [begin] };
  await repository.commit("main", begin, input);
  const { oid } = await put({ "run.sh": "echo 1\n", "b.txt": "b\n" });
  const tree = await repository.tree(oid);
  expect([...tree].map(([path, { mode }]) => [path, mode])).toEqual([
    ["a.txt", "100644"],
    ["b.txt", "100644"],
    ["run.sh", "100755"],
  ]);
});

test("a request to an unknown project or repository names it", async () => {
  const detailOf = async (method: string, path: string, body: object) => {
    const response = await send(`/api/projects${path}`, { method, body: JSON.stringify(body) });
    expect(response.status).toBe(404);
    return (await response.json<{ detail: string }>()).detail;
  };
  const files = { files: { "a.txt": "a" } };
  expect(await detailOf("PUT", "/nowhere/repos/web/files", files)).toBe(
    'There is no project "nowhere" with a repository "web".',
  );
  expect(await detailOf("POST", "/nowhere/repos", { id: "web" })).toBe('There is no project "nowhere".');
});

test("REFS-3 a writer of a deleted repository changes nothing in a new repository of the same id", async () => {
  await createProject("again");
  const address = { tenant, project: "again", repo: "web" };
  const { repository } = await new Projects(ports).open(address);
  const begin = (await repository.head("main")) ?? "";
  // The writer keeps its list of packs and commits.
  await repository.tree(begin);
  expect(await ask("DELETE", "/again")).toBe(204);
  await createProject("again", "b\n");
  const objects = await objectsOf("again");
  const changes = new Map([["b.txt", { content: new Uint8Array(1) }]]);
  const input = { changes, message: "Late", author: AUTHOR, at: 1_000 };
  expect(await repository.commit("late", null, { ...input, parents: [begin] })).toBe("moved");
  expect(await repository.commit("other", null, { ...input, parents: [] })).toBe("moved");
  const fresh = (await new Projects(ports).open(address)).repository;
  expect((await fresh.branches()).map(({ name }) => name)).toEqual(["main"]);
  expect(await objectsOf("again")).toEqual(objects);
});

test("PROJECT-2 PROJECT-3 a later request ends a deletion that a crash or a failing store interrupted, and spares the new project", async () => {
  vi.spyOn(console, "warn").mockReturnValue(undefined);
  await createProject("broken");
  const old = await objectsOf("broken");
  const broken: ObjectStore = Object.assign(Object.create(ports.objects), {
    delete: () => Promise.reject(new Error("The store is down.")),
  });
  await new Projects({ ...ports, objects: broken }).remove({ tenant, project: "broken" });
  expect(await ask("GET", "/broken")).toBe(404);
  expect(await objectsOf("broken")).toEqual(old);
  await createProject("broken");
  const late = `git/${tenant}/broken/web/pack-${ulid(Date.now() - 30 * 3_600_000).toLowerCase()}.pack`;
  await env.BUCKET.put(late, "A pack of a late writer.");
  const projects = new Projects(ports);
  await projects.finishRemovals();
  expect(await objectsOf("broken")).toEqual(expect.arrayContaining([...old, late]));
  expect(await age("broken", 49)).toBe(3);
  await new Projects({ ...ports, objects: broken }).finishRemovals();
  expect(await age("broken", 0)).toBe(3);
  // The first request of an isolate.
  const app = dramatis({ libraries: [testLibrary], authorize: async () => ADMIN });
  const request = new Request("http://dramatis.test/health");
  // SAFETY: the test environment has every binding of the application.
  const response = await app.handler.fetch(request, { ...env } as never, createExecutionContext());
  expect(response.status).toBe(200);
  const left = await objectsOf("broken");
  expect(left).toHaveLength(old.length);
  for (const key of [...old, late]) expect(left).not.toContain(key);
  expect(await age("broken", 0)).toBe(0);
  const { repository } = await projects.open({ tenant, project: "broken", repo: "web" });
  expect([...(await repository.tree((await repository.head("main")) ?? "")).keys()]).toEqual(["a.txt"]);
});
