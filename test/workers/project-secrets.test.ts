/** The secrets of projects, on workerd with D1 and a server on loopback. */
import { env } from "cloudflare:workers";
import { afterAll, expect, test } from "vitest";
import { D1ProjectSecrets } from "../../src/d1/project-secrets.ts";
import type { ProjectSecretView } from "../../src/protocol/project-secrets.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { SeenRequest } from "../support/mcp-script.ts";
import { call, ended, journal, post } from "./run-helpers.ts";
import { ADA, checkInvariants, request } from "./world.ts";

const AUTHOR: Principal = { ...ADA, subject: "bo", roles: ["author"] };
const OPERATOR: Principal = { ...ADA, subject: "op", roles: ["operator"] };
const MEMBER: Principal = { ...ADA, subject: "mel", roles: ["member"] };
const EVE: Principal = { subject: "eve", tenant: "elsewhere", roles: ["admin"] };
const HOST = new URL(env.MCP_URL).host;
const VALUE = "the-secret-of-the-shop";
const SECRET = { value: VALUE, hosts: [HOST], prefix: "Bearer " };

afterAll(checkInvariants);

async function ask(method: string, path: string, body?: object, principal = ADA) {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(`/api/projects${path}`, init, principal);
  const text = await response.text();
  // SAFETY: the answer of the API; tests assert the rest.
  const answer = (text === "" ? {} : JSON.parse(text)) as { secrets?: ProjectSecretView[]; detail?: string };
  return { status: response.status, text, ...answer };
}

async function createProject(id: string, ...secrets: object[]): Promise<void> {
  expect(await ask("POST", "", { id })).toMatchObject({ status: 201 });
  for (const [index, secret] of secrets.entries())
    expect(await ask("PUT", `/${id}/secrets/s${index}`, secret, OPERATOR)).toMatchObject({ status: 200 });
}

const task = request("/api/libraries/callers/tasks", {
  method: "POST",
  body: JSON.stringify({
    id: "call_out",
    inputSchema: { type: "object", properties: { key: { type: "string" } } },
    steps: [
      {
        ref: "send",
        action: { kind: "http.request", hosts: [HOST], effect: "pure" },
        inputMapping: {
          url: `"${env.MCP_URL}/secrets"`,
          method: '"POST"',
          body: '{"method": input.key, "headers": {}}',
        },
      },
    ],
  }),
});

/** Runs a workflow with one request. Returns the ended run, and the headers that the server got. */
async function callOut(projectId: string) {
  expect((await task).status, await (await task).clone().text()).toBe(201);
  const nodes = [{ ref: "start", task: "callers/call_out", inputMapping: { key: "input.key" } }];
  const key = crypto.randomUUID();
  const workflow = await post({ nodes, ...{ outputMapping: {} } });
  const { id } = await call("POST", "", 201, { workflow, projectId, input: { key } });
  const run = await ended(id);
  const response = await fetch(`${env.MCP_URL}/control/secrets/seen?of=${key}&count=0`);
  const seen: SeenRequest[] = await response.json();
  return { id, run, seen: seen.map(({ headers }) => headers) };
}

test("SECRET-1 a request of the project carries the secret to its host, and nobody can read the value", async () => {
  await createProject("shop", SECRET, { ...SECRET, header: "X-Key", hosts: ["api.example.com"] });
  const { id, run, seen } = await callOut("shop");
  expect(run).toMatchObject({ status: "completed" });
  expect(seen).toMatchObject([{ authorization: `Bearer ${VALUE}` }]);
  expect(seen[0]).not.toHaveProperty("x-key");
  const list = await ask("GET", "/shop/secrets", undefined, AUTHOR);
  expect(list.secrets).toMatchObject([
    { id: "s0", hosts: [HOST], header: "authorization", prefix: "Bearer " },
    { id: "s1", hosts: ["api.example.com"], header: "x-key" },
  ]);
  const { results } = await env.DB.prepare("SELECT * FROM project_secrets").all();
  const project = await ask("GET", "/shop");
  for (const shown of [list.text, project.text, JSON.stringify(results), JSON.stringify(await journal(id))])
    expect(shown).not.toContain(VALUE);
  await createProject("other");
  expect((await callOut("other")).seen).toMatchObject([{}]);
  expect((await callOut("other")).seen[0]).not.toHaveProperty("authorization");
});

test("SECRET-1 a changed secret replaces the old one, and a deleted one is sent no more", async () => {
  await createProject("changing", SECRET);
  await ask("PUT", "/changing/secrets/s0", { value: "another-secret", hosts: [HOST], header: "x-key" });
  const [headers] = (await callOut("changing")).seen;
  expect(headers).toMatchObject({ "x-key": "another-secret" });
  expect(headers).not.toHaveProperty("authorization");
  expect(await ask("DELETE", "/changing/secrets/s0", undefined, OPERATOR)).toMatchObject({ status: 204 });
  expect((await callOut("changing")).seen[0]).not.toHaveProperty("x-key");
  expect(await ask("DELETE", "/changing/secrets/s0")).toMatchObject({ status: 404 });
});

test.each([
  ["another project", "UPDATE project_secrets SET project = 'thief' WHERE project = 'victim'"],
  [
    "another host",
    `UPDATE project_secrets SET target = replace(target, 'api.example.com', '${HOST}') WHERE project = 'victim'`,
  ],
])(
  "SECRET-2 SECRET-3 a value that was moved to %s is not sent, and no request without it",
  async (_, statement) => {
    await createProject("victim", {
      ...SECRET,
      hosts: ["api.example.com", HOST].slice(0, statement.includes("thief") ? 2 : 1),
    });
    await createProject("thief");
    await env.DB.prepare(statement).run();
    const { run, seen } = await callOut(statement.includes("thief") ? "thief" : "victim");
    expect(run).toMatchObject({ status: "failed" });
    expect(run.error?.message).toContain("cannot be read with this SECRETS_KEY");
    expect(seen).toEqual([]);
    for (const id of ["victim", "thief"])
      expect(await ask("DELETE", `/${id}`)).toMatchObject({ status: 204 });
  },
);

test("SECRET-2 without the key, or with another key, no secret is stored or read", async () => {
  await createProject("locked", SECRET);
  const place = { tenant: ADA.tenant, projectId: "locked" };
  const body = { ...SECRET, header: "authorization" };
  for (const key of [undefined, "short"]) {
    const secrets = new D1ProjectSecrets(env.DB, key);
    await expect(secrets.put(place, "s1", body, 0)).rejects.toMatchObject({ code: "UNSUPPORTED" });
    expect(await secrets.list(place)).toMatchObject([{ id: "s0" }]);
    expect(secrets.keyProblem).toContain("Set it in .dev.vars or with `npx wrangler secret put SECRETS_KEY`");
  }
  for (const key of [undefined, "short"])
    await expect(
      new D1ProjectSecrets(env.DB, key).credentials(place, new URL(env.MCP_URL)),
    ).rejects.toMatchObject({ code: "UNSUPPORTED" });
  const other = new D1ProjectSecrets(env.DB, "another key with more than 32 bytes");
  await expect(other.credentials(place, new URL(env.MCP_URL))).rejects.toMatchObject({ code: "UNAVAILABLE" });
});

test("the error for a project that is not created says how to create it", async () => {
  expect(await ask("PUT", "/default/secrets/s0", SECRET, OPERATOR)).toMatchObject({
    status: 404,
    detail: expect.stringContaining('Create it first: `POST /api/projects` with `{"id": "default"}`.'),
  });
});

test("operators write secrets, authors see their hosts, and others see nothing", async () => {
  await createProject("roles", SECRET);
  for (const principal of [AUTHOR, MEMBER]) {
    expect(await ask("PUT", "/roles/secrets/s1", SECRET, principal)).toMatchObject({ status: 403 });
    expect(await ask("DELETE", "/roles/secrets/s0", undefined, principal)).toMatchObject({ status: 403 });
  }
  expect(await ask("GET", "/roles/secrets", undefined, MEMBER)).toMatchObject({ status: 403 });
  expect(await ask("GET", "/roles/secrets", undefined, EVE)).toMatchObject({ status: 404 });
  expect(await ask("PUT", "/roles/secrets/s1", SECRET, EVE)).toMatchObject({ status: 404 });
  expect(await ask("DELETE", "/roles", undefined, AUTHOR)).toMatchObject({ status: 403 });
  expect((await ask("GET", "/roles/secrets")).secrets).toHaveLength(1);
});

test("a deleted project takes its secrets with it", async () => {
  await createProject("gone", SECRET);
  expect(await ask("DELETE", "/gone", undefined, OPERATOR)).toMatchObject({ status: 403 });
  expect(await ask("DELETE", "/gone")).toMatchObject({ status: 204 });
  await createProject("gone");
  expect((await ask("GET", "/gone/secrets")).secrets).toEqual([]);
});

test("refuses values and hosts that no request can carry, and the fifty-first secret", async () => {
  await createProject("limits");
  const put = (body: object, id = "s0") => ask("PUT", `/limits/secrets/${id}`, body);
  for (const body of [
    { hosts: [HOST] },
    { ...SECRET, value: "short" },
    { ...SECRET, value: "two words-and-more" },
    { ...SECRET, value: "lines\nof-a-secret" },
    { ...SECRET, hosts: [] },
    { ...SECRET, hosts: ["*"] },
    { ...SECRET, hosts: ["localhost"] },
    { ...SECRET, hosts: ["https://api.example.com"] },
    { ...SECRET, header: "host" },
    { ...SECRET, header: "a b" },
    { ...SECRET, prefix: "\n" },
  ])
    expect(await put(body), JSON.stringify(body)).toMatchObject({ status: 422 });
  expect((await ask("GET", "/limits/secrets")).secrets).toEqual([]);
  for (let index = 0; index < 50; index++)
    expect(await put({ ...SECRET, hosts: ["api.example.com"] }, `s${index}`)).toMatchObject({ status: 200 });
  expect(await put(SECRET, "more")).toMatchObject({
    status: 409,
    detail: expect.stringContaining("Delete one"),
  });
  expect(await put(SECRET, "s7")).toMatchObject({ status: 200 });
  expect(await ask("PUT", "/absent/secrets/s0", SECRET)).toMatchObject({ status: 404 });
});
