/** Repositories on other git servers, on workerd and a real git server on loopback. */
import { env } from "cloudflare:workers";
import { afterAll, expect, test } from "vitest";
import type { Principal } from "../../src/shared/principal.ts";
import { ADA, checkInvariants, request } from "./world.ts";

const MEMBER: Principal = { ...ADA, subject: "mel", roles: ["member"] };
// The token of `test/support/git-server.ts`.
const TOKEN = "dXNlcjp0b2tlbg==";

afterAll(checkInvariants);

async function ask(method: string, path: string, body?: object, principal = ADA) {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(`/api/projects${path}`, init, principal);
  // SAFETY: the answer of the API; tests assert the rest.
  const answer = (await response.json()) as {
    branches?: { name: string; oid: string }[];
    oid?: string;
    detail?: string;
  };
  return { status: response.status, ...answer };
}

async function createProject(id: string): Promise<string> {
  expect(await ask("POST", "", { id, repositories: [{ id: "web" }] })).toMatchObject({ status: 201 });
  return `/${id}/repos/web`;
}

test("REMOTE-1 REMOTE-2 a branch goes to a remote, and a new project begins with the repository of the remote", async () => {
  const url = `${env.GIT_URL}/round-trip`;
  const from = await createProject("pushing");
  const { oid } = await ask("PUT", `${from}/files`, { files: { "a.txt": "one" } });
  expect(await ask("POST", `${from}/push`, { url })).toMatchObject({ status: 200, branch: "main", oid });
  expect(await ask("POST", `${from}/push`, { url, to: "other/branch" })).toMatchObject({
    branch: "other/branch",
    oid,
  });
  const to = await createProject("fetching");
  const branches = [
    { name: "main", oid },
    { name: "other/branch", oid },
  ];
  expect(await ask("POST", `${to}/fetch`, { url })).toMatchObject({ status: 200, branches });
  const more = await ask("PUT", `${to}/files`, { files: { "a.txt": "two" } });
  expect(await ask("POST", `${to}/push`, { url })).toMatchObject({ status: 200, oid: more.oid });
  expect((await ask("POST", `${from}/fetch`, { url, branch: "main" })).branches).toEqual([
    { name: "main", oid: more.oid },
  ]);
});

test("REMOTE-3 a private remote needs a secret of the project, and a host that is not listed is not reached", async () => {
  const url = `${env.GIT_URL}/private-web`;
  const path = await createProject("private");
  await ask("PUT", `${path}/files`, { files: { "a.txt": "one" } });
  expect(await ask("POST", `${path}/push`, { url })).toMatchObject({
    status: 403,
    detail: expect.stringContaining("Store a secret of the project"),
  });
  const secret = { value: TOKEN, hosts: [new URL(url).host], prefix: "Basic " };
  expect(await ask("PUT", "/private/secrets/git", secret)).toMatchObject({ status: 200 });
  expect(await ask("POST", `${path}/push`, { url })).toMatchObject({ status: 200 });
  // The remote may name a branch by the secret.
  const branch = `x-${TOKEN}`;
  await ask("POST", `${path}/push`, { url, to: branch });
  await ask("POST", `${path}/fetch`, { url, branch });
  const other = await createProject("remote-other");
  const elsewhere = `${env.GIT_URL}/private-other`;
  await ask("PUT", "/remote-other/secrets/git", secret);
  await ask("PUT", `${other}/files`, { files: { "a.txt": "theirs" } });
  expect(await ask("POST", `${other}/push`, { url: elsewhere, to: branch })).toMatchObject({ status: 200 });
  const refused = await ask("POST", `${path}/fetch`, { url: elsewhere, branch });
  expect(refused).toMatchObject({ status: 409, detail: expect.stringContaining("refs/heads/x-[redacted]") });
  for (const operation of ["fetch", "push"]) {
    const elsewhere = { url: "https://git.example.net/shop.git" };
    expect(await ask("POST", `${path}/${operation}`, elsewhere)).toMatchObject({
      status: 403,
      detail: expect.stringContaining("DRAMATIS_HTTP_HOSTS"),
    });
    const inside = { url: "https://inside.example.org/shop.git" };
    expect(await ask("POST", `${path}/${operation}`, inside)).toMatchObject({
      status: 403,
      detail: expect.stringContaining("10.0.0.7"),
    });
    expect(await ask("POST", `${path}/${operation}`, { url }, MEMBER)).toMatchObject({ status: 403 });
  }
});
