/** The history of runs: the content of lists, their readers, and lists while the directory does not answer. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import type { PublishedRun } from "../../src/d1/directory.ts";
import type { RunSummary, RunView } from "../../src/protocol/run-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { openGate, runsOf } from "./provider.ts";
import { rowsRead } from "./rows-read.ts";
import { request } from "./world.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const member = (tenant: string, subject: string): Principal => ({ tenant, subject, roles: ["member"] });
const operator = (tenant: string): Principal => ({ tenant, subject: "op", roles: ["operator"] });
const admin = (tenant: string): Principal => ({ tenant, subject: "ada", roles: ["admin"] });

async function call<Body>(
  method: string,
  path: string,
  status: number,
  principal: Principal,
  body?: object,
): Promise<Body> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(path, init, principal);
  const text = await response.text();
  expect(response.status, text).toBe(status);
  // SAFETY: what the API answers; tests assert the rest.
  return JSON.parse(text) as Body;
}

const list = (principal: Principal, query = "") =>
  call<{ runs: RunSummary[]; nextCursor?: string }>("GET", `/api/runs?${query}`, 200, principal);

/** Posts workflows of one node that waits at a gate, or fails. */
async function postFlows(principal: Principal): Promise<void> {
  for (const [id, more] of [
    ["waits", { wait: "'gate'" }],
    ["fails", { fails: "true" }],
  ] as const) {
    const node = {
      ref: "one",
      task: "flow/work_once",
      inputMapping: { key: "input.key", name: "'one'", ...more },
    };
    const inputSchema = { type: "object", properties: { key: { type: "string" } }, required: ["key"] };
    const body = { id, inputSchema, initialNode: "one", nodes: [node], transitions: [] };
    await call("POST", "/api/libraries/flows/workflows", 201, principal, body);
  }
}

async function start(principal: Principal, flow: string): Promise<{ id: string; key: string }> {
  const key = crypto.randomUUID();
  const body = { workflow: `flows/${flow}`, input: { key } };
  const { id } = await call<RunView>("POST", "/api/runs", 201, principal, body);
  return { id, key };
}

describe("the list of runs", () => {
  test("RUNACCESS-1 DIR-2 shows a run's states to its starter and to operators, and filters by status and workflow", async () => {
    const tenant = `list-${crypto.randomUUID()}`;
    const [ada, bob] = [admin(tenant), member(tenant, "bob")];
    await postFlows(ada);
    const waiting = await start(ada, "waits");
    const failing = await start(ada, "fails");
    const own = await start(bob, "waits");
    const shown = async (principal: Principal, query = "") =>
      (await list(principal, query)).runs.map(({ id }) => id);
    await expect.poll(() => shown(operator(tenant), "status=running")).toEqual([waiting.id, own.id]);
    expect(await shown(bob)).toEqual([own.id]);
    expect(await shown(member(tenant, "eve"))).toEqual([]);
    expect(await shown(operator("elsewhere"))).toEqual([]);
    await expect.poll(() => shown(ada, "status=failed")).toEqual([failing.id]);
    const { runs } = await list(ada, "status=failed");
    const { correlationId, input, state, error, seq, tokens, active, gates, retry, usage, ...members } =
      await call<RunView>("GET", `/api/runs/${failing.id}`, 200, ada);
    const inputPreview = JSON.stringify({ key: failing.key });
    expect(runs).toEqual([{ ...members, inputPreview, errorCode: "EXECUTION_FAILED" }]);
    expect(correlationId).toBe(failing.id);
    expect(members.endedAt).toMatch(/Z$/);
    expect(await shown(bob, "status=running&workflow=flows/waits")).toEqual([own.id]);
    expect(await shown(ada, "workflow=flows/fails")).toEqual([failing.id]);
    expect(await shown(ada, "workflow=flows/fails@1")).toEqual([failing.id]);
    expect(await shown(ada, "workflow=flows/fails@2")).toEqual([]);
    await openGate(waiting.key, "gate");
    await expect.poll(() => shown(ada, "status=completed")).toEqual([waiting.id]);
    await call("POST", `/api/runs/${own.id}/cancel`, 200, bob);
    await expect.poll(() => shown(bob, "status=cancelled")).toEqual([own.id]);
    expect((await list(bob)).runs[0]).toMatchObject({ errorCode: "CANCELLED" });
  });

  test("DIR-2 names a run by its request, else by its workflow, and finds it by a part of the name or the workflow", async () => {
    const tenant = `list-${crypto.randomUUID()}`;
    const [ada, eve] = [admin(tenant), member(tenant, "eve")];
    await postFlows(ada);
    const inputSchema = { type: "object" };
    const graph = { initialNode: "one", nodes: [{ ref: "one" }], transitions: [] };
    const titled = { id: "titled", name: "Yearly report", inputSchema, ...graph };
    await call("POST", "/api/libraries/flows/workflows", 201, ada, titled);
    const begin = (body: object, status = 201) => call<RunView>("POST", "/api/runs", status, ada, body);
    const named = { workflow: "flows/titled", name: "Änne's report" };
    const run = await begin({ ...named, idempotencyKey: "one" });
    expect(run.name).toBe("Änne's report");
    expect(await begin({ ...named, idempotencyKey: "one" })).toMatchObject({ id: run.id });
    await begin({ ...named, name: "Another", idempotencyKey: "one" }, 409);
    const byWorkflow = await begin({ workflow: "flows/titled", input: { text: "😀".repeat(500) } });
    const bare = await begin({ workflow: "flows/fails", input: { key: "none" } });
    expect([byWorkflow.name, bare.name]).toEqual(["Yearly report", undefined]);
    const shown = async (text: string, principal = ada) =>
      (await list(principal, `text=${encodeURIComponent(text)}`)).runs.map(({ id, name }) => [id, name]);
    await expect.poll(async () => (await list(ada)).runs.length).toBe(3);
    const [, long] = (await list(ada)).runs;
    expect(long?.inputPreview, "no half of a character").toBe(`{"text":"${"😀".repeat(95)}…`);
    expect(await shown("REPORT")).toEqual([
      [run.id, "Änne's report"],
      [byWorkflow.id, "Yearly report"],
    ]);
    expect(await shown("änne")).toEqual([[run.id, "Änne's report"]]);
    expect(await shown("flows/FAIL")).toEqual([[bare.id, undefined]]);
    expect(await shown("%")).toEqual([]);
    expect(await shown("report", eve)).toEqual([]);
    for (const name of ["", " ", "n".repeat(121), "\ud800", 7]) await begin({ ...named, name }, 422);
    expect((await begin({ ...named, name: "n".repeat(120) })).name).toHaveLength(120);
  });

  test("DIR-2 PUB-1 shows whether a run waits for a person or works", async () => {
    const tenant = `list-${crypto.randomUUID()}`;
    const ada = admin(tenant);
    const steps = [{ ref: "ask", action: { kind: "human.approve", prompt: "Shall it go on?" } }];
    await call("POST", "/api/libraries/flows/tasks", 201, ada, {
      id: "ask",
      inputSchema: { type: "object" },
      steps,
    });
    await call("POST", "/api/libraries/flows/workflows", 201, ada, {
      id: "gated",
      inputSchema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
      initialNode: "ask",
      nodes: [
        { ref: "ask", task: "flows/ask" },
        {
          ref: "work",
          task: "flow/work_once",
          inputMapping: { key: "input.key", name: "'one'", wait: "'gate'" },
        },
      ],
      transitions: [{ from: "ask", to: "work" }],
    });
    const { id } = await start(ada, "gated");
    const shown = async (query: string) => (await list(ada, query)).runs.map(({ id: own }) => own);
    await expect.poll(() => shown("status=waiting")).toEqual([id]);
    const { gates } = await call<RunView>("GET", `/api/runs/${id}`, 200, ada);
    const path = `/api/runs/${id}/gates/${gates[0]?.operationId}`;
    await call("POST", path, 200, ada, { answer: { approved: true } });
    await expect.poll(() => shown("status=running")).toEqual([id]);
    expect(await shown("status=waiting")).toEqual([]);
    await call("POST", `/api/runs/${id}/cancel`, 200, ada);
  });

  test.each([
    "status=over",
    "workflow=fails",
    "workflow=flows/fails@0",
    "limit=0",
    "cursor=nonsense",
    "text=",
  ])("refuses ?%s", (query) => call("GET", `/api/runs?${query}`, 422, admin("test")));

  test("DIR-3 has pages in both orders, with every filter", async () => {
    const directory = new D1Directory(env.DB);
    const tenant = `pages-${crypto.randomUUID()}`;
    const rows = Array.from({ length: 7 }, (_, n) => rowOf(n));
    for (const row of rows) await directory.putRun(tenant, row);
    for (const order of ["asc", "desc"] as const)
      for (const principal of [operator(tenant), member(tenant, "u0")])
        for (const filter of [{}, { status: "running" }, { workflow: { library: "l", id: "w0" } }] as const) {
          const expected = rows.filter(
            ({ startedBy, status, workflow }) =>
              (principal.subject === "op" || startedBy === "u0") &&
              (!("status" in filter) || status === filter.status) &&
              (!("workflow" in filter) || workflow.id === filter.workflow.id),
          );
          if (order === "desc") expected.reverse();
          const found: string[] = [];
          let cursor: string | undefined;
          do {
            const options = { limit: 2, order, ...filter, ...(cursor === undefined ? {} : { cursor }) };
            const { items, nextCursor } = await directory.runs(principal, options);
            expect(items.length).toBeLessThanOrEqual(2);
            found.push(...items.map(({ id }) => id));
            cursor = nextCursor;
          } while (cursor !== undefined);
          expect(found).toEqual(expected.map(({ id }) => id));
        }
  });

  test("DIR-5 a page of a starter, a workflow or a status reads only its own rows", async () => {
    const directory = new D1Directory(env.DB);
    const tenant = `read-${crypto.randomUUID()}`;
    const own = {
      workflow: { library: "l", id: "own", version: 1 },
      startedBy: "own",
      status: "failed",
    } as const;
    // One in ten is its own.
    const rows = Array.from({ length: 200 }, (_, n) => ({ ...rowOf(n), ...(n % 10 === 0 && own) }));
    for (const row of rows) await directory.putRun(tenant, row);
    const options = { limit: 10 };
    const pages = [
      () => directory.runs(member(tenant, "own"), options),
      () => directory.runs(member(tenant, "own"), { ...options, workflow: own.workflow, status: own.status }),
      () => directory.runs(operator(tenant), { ...options, workflow: own.workflow }),
      () => directory.runs(operator(tenant), { ...options, workflow: { library: "l", id: "own" } }),
      () => directory.runs(operator(tenant), { ...options, workflow: own.workflow, status: own.status }),
      () => directory.runs(operator(tenant), { ...options, status: own.status }),
      () => directory.runs(operator(tenant), { ...options, order: "desc" }),
    ];
    for (const page of pages) {
      const { items } = await page();
      expect(items).toHaveLength(10);
      // Each row is read with its entry in the index. One further row shows that more rows follow.
      expect(await rowsRead(page)).toBeLessThanOrEqual(2 * 11);
    }
  });

  test("DIR-5 a text among 4,500 runs reads 2,000 of them for a page, and its pages find every run once", async () => {
    const directory = new D1Directory(env.DB);
    const tenant = `text-${crypto.randomUUID()}`;
    await env.DB.prepare(`INSERT INTO runs
  (tenant, created_at, id, started_by, library, workflow, version, project_id, status, seq, name, name_key)
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4500)
SELECT ?1, n, 'run_' || n, 'u' || (n % 2), 'l', 'w', 1, 'default', 'completed', 1, name, lower(name)
FROM (SELECT n, iif(n % 900 = 1, 'Yearly Report', NULL) AS name FROM numbers)`)
      .bind(tenant)
      .run();
    const expected = [1, 901, 1_801, 2_701, 3_601].map((n) => `run_${n}`);
    const cases = [
      [operator(tenant), { text: "REPORT" }, expected],
      [member(tenant, "u1"), { text: "report" }, expected],
      [operator(tenant), { workflow: { library: "l", id: "w" }, status: "completed", text: "l/w" }, null],
      [operator(tenant), { text: "nothing" }, []],
      [operator(tenant), { status: "failed", text: "report" }, []],
    ] as const;
    for (const [principal, filter, ids] of cases)
      for (const order of ["asc", "desc"] as const) {
        const found: string[] = [];
        const sizes: number[] = [];
        let cursor: string | undefined;
        do {
          const options = { limit: 200, order, ...filter, ...(cursor === undefined ? {} : { cursor }) };
          expect(await rowsRead(() => directory.runs(principal, options))).toBeLessThanOrEqual(3 * 2_000);
          const { items, nextCursor } = await directory.runs(principal, options);
          found.push(...items.map(({ id }) => id));
          sizes.push(items.length);
          cursor = nextCursor;
        } while (cursor !== undefined);
        expect(order === "asc" ? found : found.reverse()).toEqual(
          ids ?? Array.from({ length: 4_500 }, (_, n) => `run_${n + 1}`),
        );
        if (ids === expected && principal.subject === "op")
          expect(sizes).toEqual(order === "asc" ? [3, 2, 0] : [2, 2, 1]);
      }
  });

  test("DIR-4 an older state never replaces a newer state", async () => {
    const directory = new D1Directory(env.DB);
    const tenant = `late-${crypto.randomUUID()}`;
    const first = rowOf(0);
    const over = {
      ...first,
      status: "failed",
      seq: 9,
      endedAt: first.createdAt,
      errorCode: "TIMEOUT",
    } as const;
    for (const row of [first, over, over, first]) await directory.putRun(tenant, row);
    const { seq, ...expected } = over;
    expect((await directory.runs(operator(tenant))).items).toEqual([expected]);
  });
});

function rowOf(n: number): PublishedRun {
  return {
    id: `run_${n}`,
    workflow: { library: "l", id: `w${n % 3}`, version: 1 },
    projectId: "default",
    status: n % 2 === 0 ? "running" : "completed",
    startedBy: `u${n % 4 === 3 ? 1 : 0}`,
    createdAt: new Date(1_700_000_000_000 + Math.floor(n / 2)).toISOString(),
    seq: 1,
  };
}

/** Makes D1 accept statements without an answer. */
function silenceD1(): void {
  const never = () => new Promise<never>(() => undefined);
  vi.spyOn(Object.getPrototypeOf(env.DB), "batch").mockImplementation(never);
}

const jobs = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_, { storage }) =>
    storage.sql.exec("SELECT time FROM cf_agents_jobs WHERE id = 'dramatis-listing'").toArray(),
  ).then(({ length }) => length);

describe("PUB-1 runs while D1 does not answer", () => {
  test("are started, end, and are eventually listed, although their actors die", async () => {
    const tenant = `outage-${crypto.randomUUID()}`;
    const ada = admin(tenant);
    await postFlows(ada);
    vi.useFakeTimers({ toFake: ["Date"] });
    const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
    const stub = (id: string) => Coordinator.getByName(`${tenant}:${id}`);
    // Reads of the workflow happen before the outage.
    const { id, key } = await start(ada, "waits");
    await expect.poll(() => jobs(stub(id))).toBe(0);
    silenceD1();
    await runsOf(key, 1);
    await openGate(key, "gate");
    await expect.poll(() => jobs(stub(id))).toBe(1);
    expect(await call("GET", `/api/runs/${id}`, 200, ada)).toMatchObject({ status: "completed" });
    await abortAllDurableObjects();
    vi.setSystemTime(Date.now() + 20_000);
    await runDurableObjectAlarm(stub(id));
    expect(await jobs(stub(id)), "armed still").toBe(1);
    await abortAllDurableObjects();
    vi.restoreAllMocks();
    expect((await list(ada)).runs).toMatchObject([{ id, status: "running" }]);
    vi.setSystemTime(Date.now() + 60_000);
    expect(await runDurableObjectAlarm(stub(id))).toBe(true);
    await expect.poll(async () => (await list(ada)).runs).toMatchObject([{ id, status: "completed" }]);
    await expect.poll(() => jobs(stub(id))).toBe(0);
  });
});
