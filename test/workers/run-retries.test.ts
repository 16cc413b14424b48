/** Runs that failed, are mended and retried, on the real Worker. */
import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import type { RunSummary, RunView } from "../../src/protocol/run-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { openGate, runsOf, ServedDocument } from "./provider.ts";
import { call, ended, type Flow, journal, post, start, task } from "./run-helpers.ts";
import { crash, request } from "./world.ts";

/** Posts a task that fetches the document at `url`, and fails if it is absent. Returns its reference. */
async function fetching(effect = "pure"): Promise<string> {
  const id = `get_${crypto.randomUUID().slice(0, 8)}`;
  const action = { kind: "http.request", hosts: [new URL(env.PROVIDER_CONTROL_URL).host], effect };
  const step = {
    ref: "get",
    action,
    inputMapping: { url: "input.url" },
    outputMapping: { "output.body": "result.body" },
  };
  const inputSchema = { type: "object", properties: { url: { type: "string" } }, required: ["url"] };
  return posted("tasks", { id, inputSchema, steps: [step] });
}

async function posted(kind: string, definition: { id: string; [field: string]: unknown }): Promise<string> {
  const init = { method: "POST", body: JSON.stringify(definition) };
  const response = await request(`/api/libraries/flows/${kind}`, init);
  expect(response.status, await response.clone().text()).toBe(201);
  return `flows/${definition.id}`;
}

/** Returns documents with these bodies; `null` is not there yet. */
async function documents(...bodies: (string | null)[]): Promise<ServedDocument[]> {
  const all = bodies.map(() => new ServedDocument());
  await Promise.all(all.map((one, index) => one.set(bodies[index] ?? null)));
  return all;
}

/** A workflow that passes gates and fetches documents in a branch per item. Two branches must complete. */
const fetchAll = async (): Promise<Flow> => ({
  contextSchema: { type: "object", properties: { all: { type: "array", items: {} } } },
  nodes: [
    { ref: "start" },
    task(
      "wait",
      "once",
      { outputMapping: { "output.url": "result.value" } },
      { wait: "item.gate", value: "item.url" },
    ),
    {
      ref: "get",
      task: await fetching(),
      inputMapping: { url: "output.url" },
      outputMapping: { "output.body": "result.body" },
    },
    { ref: "end" },
  ],
  transitions: [
    {
      from: "start",
      to: "wait",
      siblingGroup: "all",
      foreach: { collection: "input.items", itemVar: "item" },
    },
    { from: "wait", to: "get" },
    {
      from: "get",
      to: "end",
      synchronization: {
        siblingGroup: "all",
        strategy: { mOfN: 2 },
        merge: { source: "_branch.output.body", target: "state.all", strategy: "collect" },
      },
    },
  ],
  outputMapping: { all: "state.all" },
});

/** A workflow of one node that fetches `input.items[0]`. */
const fetchOne = async (more: object = {}): Promise<Flow> => ({
  initialNode: "get",
  contextSchema: { type: "object", properties: { got: {} } },
  nodes: [
    {
      ref: "get",
      task: await fetching(),
      inputMapping: { url: "input.items[0]" },
      outputMapping: { "state.got": "result.body" },
    },
  ],
  outputMapping: { got: "state.got" },
  ...more,
});

const retry = (id: string, status = 200, body: object = {}, principal?: Principal) =>
  call<RunView & { code?: string; detail?: string }>("POST", `/${id}/retry`, status, body, principal);

describe("RUNRETRY-1 RUNSTORE-5 a run that failed", () => {
  test("repeats only the failed item, also after crashes", async () => {
    const [first, second] = await documents("one", null);
    const items = [
      { url: first?.url, gate: "first" },
      { url: second?.url, gate: "second" },
    ];
    const { id, key } = await start(await fetchAll(), { items });
    await openGate(key, "first");
    await expect.poll(async () => (await journal(id)).map(({ type }) => type)).toContain("token.waiting");
    await openGate(key, "second");
    const failed = await ended(id);
    expect(failed).toMatchObject({
      status: "failed",
      error: { code: "SYNC_UNSATISFIABLE" },
      retry: { tokens: 1, repeatsOnce: [] },
    });
    await crash();
    await second?.set("two");
    const { seq } = failed;
    const running = await retry(id, 200, { seq });
    expect(running).not.toHaveProperty("endedAt");
    expect(running).not.toHaveProperty("error");
    expect(running).not.toHaveProperty("retry");
    await crash();
    expect(await ended(id)).toMatchObject({ status: "completed", output: { all: ["one", "two"] } });
    expect([await first?.reads(), await second?.reads()]).toEqual([1, expect.toBeOneOf([2, 3])]);
    const entries = await journal(id);
    expect(await runsOf(key), "the gates are passed once").toHaveLength(2);
    expect(entries.filter(({ type }) => type === "task.completed")).toHaveLength(4);
    const { token } = entries.find(({ type }) => type === "token.failed") ?? {};
    expect(entries.find(({ type }) => type === "workflow.retried")).toMatchObject({
      data: { by: "ada", tokens: [token], fanOuts: [0] },
    });
    expect(await retry(id, 409)).toMatchObject({ code: "CONFLICT" });
  });

  test("has a new row in the list, and its followers see all of it", async () => {
    const [document] = await documents(null);
    const { id } = await start(await fetchOne(), { items: [document?.url] });
    const { seq } = await ended(id);
    const listed = async (status: string) => {
      const response = await request(`/api/runs?status=${status}&limit=100&order=desc`);
      const { runs } = (await response.json()) as { runs: RunSummary[] };
      return runs.find((run) => run.id === id);
    };
    await vi.waitFor(
      async () => expect(await listed("failed")).toMatchObject({ errorCode: "EXECUTION_FAILED" }),
      10_000,
    );
    expect((await request(`/api/runs/${id}/events?from=${seq}`)).status).toBe(204);
    await document?.set("here");
    await retry(id);
    const text = await (await request(`/api/runs/${id}/events`)).text();
    const types = [...text.matchAll(/"type":"(workflow\.[a-z_]+)"/g)].map(([, type]) => type);
    expect(types).toEqual(["workflow.started", "workflow.failed", "workflow.retried", "workflow.completed"]);
    await vi.waitFor(async () => expect(await listed("completed")).toBeDefined(), 10_000);
    expect(await listed("completed")).not.toHaveProperty("errorCode");
    expect(await listed("failed")).toBeUndefined();
  });

  test("RUNACCESS-1 is retried by the user who started it and by operators; to others it does not exist", async () => {
    const [document] = await documents(null);
    const { id } = await start(await fetchOne(), { items: [document?.url] });
    await ended(id);
    await retry(id, 404, {}, { subject: "bob", tenant: "test", roles: [] });
    await retry(id, 422, { node: "get" });
    await document?.set("here");
    await retry(id, 200, {}, { subject: "op", tenant: "test", roles: ["operator"] });
    expect(await ended(id)).toMatchObject({ status: "completed", output: { got: "here" } });
    expect((await journal(id)).find(({ type }) => type === "workflow.retried")?.data).toMatchObject({
      by: "op",
    });
  });

  test("is retried once by two requests that saw the same failure", async () => {
    const [document] = await documents(null);
    const { id } = await start(await fetchOne(), { items: [document?.url] });
    const { seq } = await ended(id);
    const both = await Promise.all(
      [1, 2].map(() => request(`/api/runs/${id}/retry`, { method: "POST", body: JSON.stringify({ seq }) })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await ended(id)).toMatchObject({ status: "failed" });
    await expect.poll(() => document?.reads()).toBe(2);
  });
});

describe("RUNRETRY-2 RUNRETRY-3 a `once` task", () => {
  test("that was cancelled while it ran is repeated only on request, as another operation", async () => {
    const [document] = await documents(null);
    const flow: Flow = {
      nodes: [
        { ref: "start" },
        { ref: "bad", task: await fetching(), inputMapping: { url: "input.items[0]" } },
        task("good", "once", {}, { wait: "'gate'" }),
      ],
      transitions: [
        { from: "start", to: "good" },
        { from: "start", to: "bad", condition: "true" },
      ],
    };
    const { id, key } = await start(flow, { items: [document?.url] });
    const failed = await ended(id);
    await runsOf(key, 1);
    expect(failed).toMatchObject({ status: "failed", retry: { tokens: 2, repeatsOnce: ["good"] } });
    expect(await retry(id, 409)).toMatchObject({
      code: "OUTCOME_UNKNOWN",
      detail: expect.stringContaining('"good"'),
    });
    expect(await call("GET", `/${id}`, 200)).toEqual(failed);
    await document?.set("here");
    await retry(id, 200, { repeatOnce: true });
    const ran = await runsOf(key, 2);
    expect(new Set(ran.map(({ operationId }) => operationId)).size).toBe(2);
    await openGate(key, "gate");
    expect(await ended(id)).toMatchObject({ status: "completed" });
    expect(await runsOf(key)).toHaveLength(2);
  });
});

describe("RUNRETRY-2 RUNRETRY-4 a node that waits for others", () => {
  test("with a sub-workflow starts another run; the run that failed is not retried itself", async () => {
    const [document] = await documents(null);
    const inner = await post(await fetchOne());
    const { id } = await start(
      {
        initialNode: "inner",
        contextSchema: { type: "object", properties: { got: {} } },
        nodes: [
          {
            ref: "inner",
            workflow: inner,
            inputMapping: { key: "input.key", items: "input.items" },
            outputMapping: { "state.got": "result.got" },
          },
        ],
        outputMapping: { got: "state.got" },
      },
      { items: [document?.url] },
    );
    expect(await ended(id)).toMatchObject({ status: "failed", retry: { repeatsOnce: [] } });
    const first = await vi.waitUntil(
      async () => {
        const { runs } = await call<{ runs: RunSummary[] }>("GET", `?workflow=${inner}`, 200);
        return runs.find(({ status }) => status === "failed");
      },
      { timeout: 20_000 },
    );
    expect(await retry(first.id, 409)).toMatchObject({ detail: expect.stringContaining(id) });
    await document?.set("here");
    const { active } = await retry(id);
    expect(active).toMatchObject([{ attempt: 2, runId: expect.not.stringMatching(first.id) }]);
    expect(await ended(id)).toMatchObject({ status: "completed", output: { got: "here" } });
  });

  test("with a question asks it again, and refuses an answer to the old question", async () => {
    const ask = await posted("tasks", {
      id: `ask_${crypto.randomUUID().slice(0, 8)}`,
      inputSchema: { type: "object" },
      steps: [{ ref: "ask", action: { kind: "human.approve", prompt: "Go on?", timeoutMs: 1_000 } }],
    });
    const { id } = await start({
      initialNode: "ask",
      contextSchema: { type: "object", properties: { answer: {} } },
      nodes: [{ ref: "ask", task: ask, outputMapping: { "state.answer": "result" } }],
      outputMapping: { answer: "state.answer" },
    });
    const [old] = (await call("GET", `/${id}`, 200)).gates;
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "TIMEOUT" } });
    const [again] = (await retry(id)).gates;
    expect(again).toMatchObject({ node: "ask", prompt: "Go on?", expiresAt: expect.any(String) });
    const answer = { answer: { approved: true } };
    await call("POST", `/${id}/gates/${old?.operationId}`, 409, answer);
    await call("POST", `/${id}/gates/${again?.operationId}`, 200, answer);
    expect(await ended(id)).toMatchObject({ status: "completed", output: { answer: { approved: true } } });
  });
});
