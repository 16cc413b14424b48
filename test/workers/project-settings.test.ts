/** The settings of projects, on workerd with D1. */
import { env } from "cloudflare:workers";
import { ulid } from "ulid";
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { D1ProjectSettings, type KnownSettings } from "../../src/d1/project-settings.ts";
import { mayUseMcpServer } from "../../src/policy/project-settings.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { Project } from "../../src/protocol/projects.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import { call as callRuns, ended, post } from "./run-helpers.ts";
import { ADA, checkInvariants, request, TestConversation } from "./world.ts";

const AUTHOR: Principal = { ...ADA, subject: "bo", roles: ["author"] };
const OPERATOR: Principal = { ...ADA, subject: "op", roles: ["operator"] };
const HOUR_MS = 3_600_000;
const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
const hello = { replies: [[{ text: "Hello." }, { usage }]] };

async function ask<Body = Project & { code: string; detail: string }>(
  method: string,
  path: string,
  body?: object,
  principal = ADA,
): Promise<Body & { status: number }> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(path, init, principal);
  // SAFETY: the answer of the API; tests assert the rest.
  return { ...((await response.json()) as Body), status: response.status };
}

/** Creates a project with settings. Returns its path. */
async function createProject(id: string, settings: object): Promise<string> {
  const path = `/api/projects/${id}`;
  expect(await ask("POST", "/api/projects", { id })).toMatchObject({ status: 201 });
  expect(await ask("PATCH", path, settings)).toMatchObject({ status: 200, ...settings });
  return path;
}

/** Starts a conversation of a new agent in a project. */
async function converse(project: string, persona: object | string = "test/plain"): Promise<TestConversation> {
  const { id: agentId } = await ask<{ id: string }>("POST", "/api/agents", {
    persona,
    projectIds: [project],
  });
  const { id } = await ask<{ id: string }>("POST", "/api/conversations", { agentId });
  return new TestConversation(id);
}

/** Sends a message, and returns the ended turn with the number of requests to the provider. */
async function turnOf(conversation: TestConversation) {
  const { play, turnId } = await conversation.play(hello);
  const turn = await vi.waitUntil(
    async () => {
      const found = await conversation.turn(turnId);
      return found.status === "completed" || found.status === "failed" ? found : undefined;
    },
    { timeout: 10_000, interval: 20 },
  );
  return { turn, requests: (await play.requests()).length };
}

afterEach(checkInvariants);

describe("the settings of a project", () => {
  let path: string;

  beforeAll(async () => {
    path = await createProject("settings", { budget: { tokens: 5 } });
  });

  test("are a merge patch of operators, and everyone reads them", async () => {
    for (const principal of [AUTHOR, { ...ADA, roles: [] }])
      expect(await ask("PATCH", path, { budget: null }, principal)).toMatchObject({ status: 403 });
    const change = {
      name: "Shop",
      allowedModelProviders: ["anthropic"],
      allowedMcpServers: ["files"],
      limits: { maxConcurrentRuns: 2, maxModelCallsPerHour: 3 },
    };
    const changed = await ask("PATCH", path, change, OPERATOR);
    expect(changed).toMatchObject({ ...change, budget: { tokens: 5 }, spent: { tokens: 0 } });
    const removal = { name: null, budget: null, limits: { maxConcurrentRuns: null } };
    await ask("PATCH", path, removal, OPERATOR);
    const project = await ask("GET", path, undefined, { ...ADA, roles: [] });
    expect(project).toMatchObject({ limits: { maxModelCallsPerHour: 3 }, allowedMcpServers: ["files"] });
    for (const name of ["name", "budget", "spent"]) expect(project).not.toHaveProperty(name);
    expect(["files", "mail"].map((server) => mayUseMcpServer(project, server))).toEqual([true, false]);
    expect(mayUseMcpServer({}, "mail")).toBe(true);
  });

  test("refuse unknown providers, profiles and projects, and stay as they are", async () => {
    const before = await ask("GET", path);
    for (const body of [
      {},
      { allowedModelProviders: ["nobody"] },
      { allowedModelProviders: [] },
      { modelProfileId: "test/absent" },
      { modelProfileId: "no reference" },
      { limits: { maxModelCallsPerHour: -1 } },
      { budget: {} },
      { secrets: {} },
    ])
      expect(await ask("PATCH", path, body), JSON.stringify(body)).toMatchObject({ status: 422 });
    expect(await ask("PATCH", "/api/projects/absent", { budget: null })).toMatchObject({ status: 404 });
    expect(await ask("GET", path)).toEqual(before);
  });
});

test("a project's model profile is the model of personas that name none", async () => {
  await createProject("profiled", { modelProfileId: "test/scripted" });
  const persona = { identity: { systemPrompt: "You are a test." } };
  const { turn, requests } = await turnOf(await converse("profiled", persona));
  expect(turn).toMatchObject({ status: "completed" });
  expect(requests).toBe(1);
});

test("SETTING-1 a provider that the project does not allow is not called, and the turn's error names the project and the setting", async () => {
  const path = await createProject("providers", { allowedModelProviders: ["anthropic"] });
  const conversation = await converse("providers");
  const { turn, requests } = await turnOf(conversation);
  expect(turn).toMatchObject({ status: "failed", error: { code: "PERMISSION_DENIED", retriable: false } });
  for (const part of ['"providers"', "openai", "`allowedModelProviders`"])
    expect(turn.error?.message).toContain(part);
  expect(requests).toBe(0);
  await ask("PATCH", path, { allowedModelProviders: ["anthropic", "openai"] });
  expect((await turnOf(conversation)).turn).toMatchObject({ status: "completed" });
});

test("SETTING-1 a project's budget counts the tokens of all its calls, and a new budget begins at 0", async () => {
  const path = await createProject("tokens", { budget: { tokens: 110 } });
  expect((await turnOf(await converse("tokens"))).turn).toMatchObject({ status: "completed" });
  expect(await ask("GET", path)).toMatchObject({ spent: { tokens: 110 } });
  const conversation = await converse("tokens");
  const { turn, requests } = await turnOf(conversation);
  expect(turn).toMatchObject({ status: "failed", error: { code: "BUDGET_EXCEEDED", retriable: false } });
  for (const part of ['"tokens"', "110", "`budget.tokens`"]) expect(turn.error?.message).toContain(part);
  expect(requests).toBe(0);
  await ask("PATCH", path, { budget: null });
  await ask("PATCH", path, { budget: { tokens: 1 } });
  expect(await ask("GET", path)).toMatchObject({ spent: { tokens: 0 } });
});

test("SETTING-2 a project's runs begin within the limit, and other projects are free", async () => {
  await createProject("runs", { limits: { maxConcurrentRuns: 1 } });
  const inputMapping = { key: "input.key", name: "'one'", wait: "'hold'" };
  const workflow = await post({ nodes: [{ ref: "start", task: "flow/work_once", inputMapping }] });
  const start = { workflow, projectId: "runs", input: { key: ulid() } };
  const first = await callRuns<{ id: string }>("POST", "", 201, start);
  const refused = await ask("POST", "/api/runs", { ...start, input: { key: ulid() } });
  expect(refused).toMatchObject({ status: 429, code: "RATE_LIMITED" });
  for (const part of ['"runs"', "`limits.maxConcurrentRuns`"]) expect(refused.detail).toContain(part);
  const elsewhere = await callRuns<{ id: string }>("POST", "", 201, { ...start, projectId: "free" });
  for (const { id } of [first, elsewhere]) {
    await callRuns("POST", `/${id}/cancel`, 200);
    await ended(id);
  }
  await expect.poll(async () => (await ask("POST", "/api/runs", start)).status).toBe(201);
});

test("SETTING-1 a task of a run calls no provider that its project does not allow", async () => {
  await createProject("tasks", { allowedModelProviders: ["anthropic"] });
  const llm = { kind: "llm", profile: "test/scripted", template: "{{ question }}" };
  const task = {
    ...{ id: "asks", timeoutMs: 20_000, inputSchema: { type: "object" } },
    steps: [{ ref: "ask", action: llm, inputMapping: { question: "'Why?'" } }],
  };
  expect(await ask("POST", "/api/libraries/flows/tasks", task)).toMatchObject({ status: 201 });
  const workflow = await post({ nodes: [{ ref: "start", task: "asks" }] });
  const { id } = await callRuns("POST", "", 201, { workflow, projectId: "tasks", input: { key: ulid() } });
  const { error } = await ended(id);
  expect(error).toMatchObject({ code: "PERMISSION_DENIED" });
  expect(error?.message).toContain("`allowedModelProviders`");
});

test("SETTING-2 a tool call that runs a workflow waits while the project has no room", async () => {
  await createProject("waits", { limits: { maxConcurrentRuns: 1 } });
  const inputMapping = { key: "input.key", name: "'one'", wait: "'hold'" };
  const holding = await post({ nodes: [{ ref: "start", task: "flow/work_once", inputMapping }] });
  const hold = { workflow: holding, projectId: "waits", input: { key: ulid() } };
  const first = await callRuns("POST", "", 201, hold);
  const echo = { ref: "start", task: "flow/echo", inputMapping: { value: "1" } };
  const workflow = await post({ nodes: [echo], inputSchema: { type: "object" } });
  const tool = { id: "waiting", name: "echo", description: "Echoes.", target: { workflow } };
  expect(await ask("POST", "/api/libraries/flows/tools", tool)).toMatchObject({ status: 201 });
  const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
  const conversation = await converse("waits", { identity, tools: { toolIds: ["flows/waiting"] } });
  const { turnId } = await conversation.play({
    replies: [[{ call: "echo", input: {} }], [{ text: "Done." }]],
  });
  const types = async () => (await conversation.journal()).map(({ type }) => type);
  await expect.poll(types).toContain("workflow_run.started");
  expect((await conversation.turn(turnId)).status).toBe("active");
  await callRuns("POST", `/${first.id}/cancel`, 200);
  await expect
    .poll(async () => (await conversation.turn(turnId)).status, { timeout: 20_000 })
    .toBe("completed");
  const { moves } = await conversation.turn(turnId);
  expect(moves.flatMap(({ toolResult }) => toolResult?.success ?? [])).toEqual([true]);
});

test("SETTING-2 a workflow that a tool runs for an active run begins at the limit, also below a further agent", async () => {
  await createProject("inner", { limits: { maxConcurrentRuns: 1 } });
  const echo = { ref: "start", task: "flow/echo", inputMapping: { value: "1" } };
  const inner = await post({ nodes: [echo], inputSchema: { type: "object" } });
  const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
  const postTool = async (id: string, target: object) => {
    const tool = { id, name: "go", description: "Works.", target };
    expect(await ask("POST", "/api/libraries/flows/tools", tool)).toMatchObject({ status: 201 });
    const persona = { identity, tools: { toolIds: [`flows/${id}`] } };
    return ask<{ id: string }>("POST", "/api/agents", { persona, projectIds: ["inner"] });
  };
  const worker = await postTool("inner_run", { workflow: inner });
  const chief = await postTool("inner_ask", { agent: worker.id });
  const works = new Play({ replies: [[{ call: "go", input: {} }], [{ text: "Done." }]] });
  const asks = new Play({
    replies: [[{ call: "go", input: { message: works.content } }], [{ text: "Done." }]],
  });
  for (const [agent, play] of [
    [worker.id, works],
    [chief.id, asks],
  ] as const) {
    const node = { ref: "start", agent, inputMapping: { message: "input.items[0]" } };
    const workflow = await post({ nodes: [node] });
    const input = { key: ulid(), items: [play.content] };
    const begun = () => ask<{ id: string }>("POST", "/api/runs", { workflow, projectId: "inner", input });
    const run = await vi.waitUntil(async () => [await begun()].find(({ status }) => status === 201));
    expect(await ended(run.id)).toMatchObject({ status: "completed" });
    const { runs } = await ask<{ runs: object[] }>("GET", `/api/runs?workflow=${inner}`);
    expect(runs).toMatchObject(agent === worker.id ? [{ status: "completed" }] : [{}, {}]);
  }
});

test("SETTING-2 the workflow of a hook begins at the limit", async () => {
  await createProject("hooks", { limits: { maxConcurrentRuns: 0 } });
  const conversation = await converse("hooks", "hookflows/assembly_works");
  expect((await turnOf(conversation)).turn).toMatchObject({ status: "completed" });
});

test("SETTING-4 during an outage of D1 the known settings apply, and calls are not counted", async () => {
  await createProject("outage", { allowedModelProviders: ["openai"], limits: { maxModelCallsPerHour: 0 } });
  let isDown = false;
  const down = <Value>(value: Value): Value => {
    if (isDown) throw new Error("D1 is down.");
    return value;
  };
  // SAFETY: the store uses these members.
  const database = {
    prepare: (statement: string) => down(env.DB).prepare(statement),
    batch: (statements: D1PreparedStatement[]) => down(env.DB).batch(statements),
  } as D1Database;
  let now = Date.now();
  const clock = { now: () => now, timer: systemClock.timer };
  const store = new D1ProjectSettings(database, new Map(), clock);
  const place = { tenant: ADA.tenant, projectId: "outage" };
  expect(await store.refusal(place, "openai")).toMatchObject({ code: "RATE_LIMITED" });
  isDown = true;
  now += 60_000;
  vi.spyOn(console, "error").mockReturnValue(undefined);
  expect(await store.refusal(place, "anthropic")).toMatchObject({ code: "PERMISSION_DENIED" });
  expect(await store.refusal(place, "openai")).toBeUndefined();
  expect(await new D1ProjectSettings(database, new Map(), clock).refusal(place, "anthropic")).toBeUndefined();
});

test("SETTING-4 a failed read keeps the settings that another request has read meanwhile", async () => {
  const path = await createProject("meanwhile", { allowedModelProviders: ["openai"] });
  const known: KnownSettings = new Map();
  let now = Date.now();
  const clock = { now: () => now, timer: systemClock.timer };
  const place = { tenant: ADA.tenant, projectId: "meanwhile" };
  const good = new D1ProjectSettings(env.DB, known, clock);
  await good.read(place);
  now += 60_000;
  const { promise, reject } = Promise.withResolvers<never>();
  const statement = { bind: () => statement, all: () => promise, run: () => promise };
  // SAFETY: the store uses these members.
  const failing = { prepare: () => statement, batch: () => promise } as unknown as D1Database;
  vi.spyOn(console, "error").mockReturnValue(undefined);
  const late = new D1ProjectSettings(failing, known, clock).read(place);
  await ask("PATCH", path, { allowedModelProviders: ["anthropic"] });
  expect(await good.read(place)).toMatchObject({ allowedModelProviders: ["anthropic"] });
  reject(new Error("D1 is down."));
  expect(await late).toMatchObject({ allowedModelProviders: ["anthropic"] });
});

test("SETTING-4 a D1 that does not answer delays one call, and the next calls of ten seconds do not ask it", async () => {
  const waits: number[] = [];
  let queries = 0;
  const silent = () => {
    queries += 1;
    return new Promise<never>(() => undefined);
  };
  const statement = { bind: () => statement, all: silent, run: silent, first: silent, raw: silent };
  // SAFETY: the store uses these members.
  const database = { prepare: () => statement, batch: silent } as unknown as D1Database;
  const timer = (ms: number, run: () => void) => {
    waits.push(ms);
    return systemClock.timer(1, run);
  };
  let now = Date.now();
  const store = new D1ProjectSettings(database, new Map(), { now: () => now, timer });
  const place = { tenant: ADA.tenant, projectId: "silent" };
  vi.spyOn(console, "error").mockReturnValue(undefined);
  expect(await store.refusal(place, "openai")).toBeUndefined();
  const asked = queries;
  expect(Math.min(...waits), "milliseconds").toBeLessThanOrEqual(2_000);
  now += 9_000;
  await store.spend(place, { inputTokens: 5, outputTokens: 5 });
  expect(await store.refusal(place, "openai")).toBeUndefined();
  expect(queries).toBe(asked);
  now += 2_000;
  await store.refusal(place, "openai");
  expect(queries).toBeGreaterThan(asked);
});

test("SETTING-4 a silent D1 delays the first run as a call, and runs of the next ten seconds begin uncounted", async () => {
  await createProject("mute", { limits: { maxConcurrentRuns: 1 } });
  const waits: number[] = [];
  const timer = (ms: number, run: () => void) => {
    waits.push(ms);
    return systemClock.timer(ms < 10_000 ? Math.min(ms, 50) : ms, run);
  };
  const known: KnownSettings = new Map();
  const place = { tenant: ADA.tenant, projectId: "mute" };
  expect(await new D1ProjectSettings(env.DB, known, systemClock).read(place)).toHaveProperty("limits");
  const store = new D1ProjectSettings(env.DB, known, { now: systemClock.now, timer });
  let counts = 0;
  const silent = () => {
    counts += 1;
    return new Promise<never>(() => undefined);
  };
  for (let run = 0; run < 2; run++) expect(await store.permitRun(place, silent)).toBe(true);
  expect([counts, waits]).toEqual([1, [2_000]]);
});

test("SETTING-3 another isolate follows a change within ten seconds", async () => {
  const path = await createProject("followed", { allowedModelProviders: ["openai"] });
  let now = Date.now();
  const clock = { now: () => now, timer: systemClock.timer };
  const place = { tenant: ADA.tenant, projectId: "followed" };
  const other = new D1ProjectSettings(env.DB, new Map(), clock);
  expect(await other.refusal(place, "openai")).toBeUndefined();
  await ask("PATCH", path, { allowedModelProviders: ["anthropic"] });
  now += 10_000;
  expect(await other.refusal(place, "openai")).toMatchObject({ code: "PERMISSION_DENIED" });
});

test("SETTING-1 isolates whose clocks stand on both sides of an hour share the count", async () => {
  await createProject("border", { limits: { maxModelCallsPerHour: 2 } });
  const hour = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
  const at = (now: number) => new D1ProjectSettings(env.DB, new Map(), { ...systemClock, now: () => now });
  const place = { tenant: ADA.tenant, projectId: "border" };
  const [early, late] = [at(hour - 1), at(hour + 1)];
  expect(await late.refusal(place, "openai")).toBeUndefined();
  expect(await early.refusal(place, "openai")).toBeUndefined();
  for (const store of [late, early])
    expect(await store.refusal(place, "openai")).toMatchObject({ code: "RATE_LIMITED" });
  expect(await at(hour + HOUR_MS).refusal(place, "openai")).toBeUndefined();
});

test("an author does not remove the settings of a project by a deletion", async () => {
  const path = await createProject("kept", { limits: { maxModelCallsPerHour: 2 } });
  expect(await ask("DELETE", path, undefined, AUTHOR)).toMatchObject({ status: 403, code: "FORBIDDEN" });
  expect(await ask("GET", path)).toMatchObject({ limits: { maxModelCallsPerHour: 2 } });
  await ask("PATCH", path, { limits: null, name: "Kept" });
  expect((await request(path, { method: "DELETE" }, AUTHOR)).status).toBe(204);
});

test("SETTING-1 SETTING-3 a project's calls of an hour are counted over its conversations, and the next hour begins at 0", async () => {
  const hour = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
  vi.useFakeTimers({ toFake: ["Date"], now: hour });
  onTestFinished(() => void vi.useRealTimers());
  const path = await createProject("hourly", { limits: { maxModelCallsPerHour: 2 } });
  for (const conversation of [await converse("hourly"), await converse("hourly")])
    expect((await turnOf(conversation)).turn).toMatchObject({ status: "completed" });
  const conversation = await converse("hourly");
  const { turn, requests } = await turnOf(conversation);
  expect(turn).toMatchObject({ status: "failed", error: { code: "RATE_LIMITED", retriable: true } });
  expect(turn.error?.message).toContain("`limits.maxModelCallsPerHour`");
  expect(requests).toBe(0);
  await ask("PATCH", path, { limits: { maxModelCallsPerHour: 3 } });
  expect((await turnOf(conversation)).turn).toMatchObject({ status: "completed" });
  expect((await turnOf(conversation)).turn).toMatchObject({ status: "failed" });
  vi.setSystemTime(hour + HOUR_MS);
  expect((await turnOf(conversation)).turn).toMatchObject({ status: "completed" });
});
