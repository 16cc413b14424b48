/** Runs of workflows on the real Worker: started over HTTP, worked by the Executor, killed, cancelled, and read again. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import type { RunEntryView, RunView } from "../../src/protocol/coordinator-api.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { openGate, runsOf } from "./provider.ts";
import { ADA, crash, request } from "./world.ts";

const ANY = { type: "array", items: {} };
let made = 0;

interface Flow {
  nodes: object[];
  transitions?: object[];
  [field: string]: unknown;
}

/** Posts a workflow; returns its reference. */
async function post(flow: Flow): Promise<string> {
  const id = `flow_${made++}`;
  const { nodes, transitions = [], initialNode = "start", ...more } = flow;
  const body = {
    id,
    inputSchema: { type: "object", properties: { key: { type: "string" }, items: ANY }, required: ["key"] },
    initialNode,
    nodes,
    transitions,
    ...more,
  };
  const response = await request("/api/libraries/flows/workflows", {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(response.status, await response.clone().text()).toBe(201);
  return `flows/${id}`;
}

/** Sends a request about runs; fails the test unless the status is the expected one. */
async function call<Body = RunView>(
  method: string,
  path: string,
  status: number,
  body?: object,
  principal: Principal = ADA,
): Promise<Body> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(`/api/runs${path}`, init, principal);
  const text = await response.text();
  expect(response.status, text).toBe(status);
  // SAFETY: what the API answers; tests assert the rest.
  return JSON.parse(text) as Body;
}

async function start(flow: Flow, input: object = {}): Promise<{ id: string; key: string }> {
  const key = crypto.randomUUID();
  const workflow = await post(flow);
  const { id } = await call("POST", "", 201, { workflow, input: { key, ...input } });
  return { id, key };
}

/** Lets the alarm of a run's actor fire, as the platform does. */
async function wakeRun(id: string): Promise<void> {
  // SAFETY: the classes of the application are among the exports.
  const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
  await runDurableObjectAlarm(Coordinator.getByName(`test:${id}`));
}

/** Waits for the end of a run. */
function ended(id: string): Promise<RunView> {
  return vi.waitUntil(
    async () => {
      const run = await call("GET", `/${id}`, 200);
      return run.status === "running" || run.status === "waiting" ? undefined : run;
    },
    { timeout: 20_000, interval: 20 },
  );
}

async function journal(id: string): Promise<RunEntryView[]> {
  const all: RunEntryView[] = [];
  for (let cursor = ""; ; ) {
    const { entries, nextCursor } = await call<{ entries: RunEntryView[]; nextCursor?: string }>(
      "GET",
      `/${id}/journal?limit=20${cursor}`,
      200,
    );
    all.push(...entries);
    if (nextCursor === undefined) return all;
    cursor = `&cursor=${nextCursor}`;
  }
}

const task = (ref: string, effect = "pure", more: object = {}, mapping: object = {}) => ({
  ref,
  task: `flow/work_${effect}`,
  inputMapping: { key: "input.key", name: `'${ref}'`, ...mapping },
  ...more,
});

const fanOut = (effect: string, mapping: object, synchronization: object = {}): Flow => ({
  contextSchema: { type: "object", properties: { all: ANY } },
  nodes: [
    { ref: "start" },
    task(
      "work",
      effect,
      { outputMapping: { "output.value": "result.value" } },
      { value: "item", ...mapping },
    ),
    { ref: "end" },
  ],
  transitions: [
    {
      from: "start",
      to: "work",
      siblingGroup: "all",
      foreach: { collection: "input.items", itemVar: "item" },
    },
    {
      from: "work",
      to: "end",
      synchronization: {
        siblingGroup: "all",
        strategy: "all",
        merge: { source: "_branch.output.value", target: "state.all", strategy: "collect" },
        ...synchronization,
      },
    },
  ],
  outputMapping: { all: "state.all" },
});

describe("a run", () => {
  test("F1 of one node gives its output, and its journal says what happened", async () => {
    const { id, key } = await start(
      {
        contextSchema: { type: "object", properties: { got: {} } },
        initialNode: "one",
        nodes: [
          task("one", "pure", { outputMapping: { "state.got": "result.value" } }, { value: "input.items" }),
        ],
        outputMapping: { got: "state.got" },
      },
      { items: [1, "two"] },
    );
    const run = await ended(id);
    expect(run).toMatchObject({
      status: "completed",
      output: { got: [1, "two"] },
      state: { got: [1, "two"] },
      tokens: 1,
      active: [],
    });
    const entries = await journal(id);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
    expect(entries.map(({ type }) => type)).toEqual([
      "workflow.started",
      "token.created",
      "task.dispatched",
      "task.completed",
      "context.updated",
      "token.completed",
      "workflow.completed",
    ]);
    expect(entries[2]?.data).toEqual({ input: { key, name: "one", value: [1, "two"] } });
    expect(entries[3]?.data).toMatchObject({ attempt: 1, output: { name: "one", value: [1, "two"] } });
  });

  test("F2 F4 F8 a `foreach` fans out, and its fan-in merges in the order of the list; an empty list is an empty merge", async () => {
    const many = await start(fanOut("pure", {}), { items: [3, 1, 2] });
    expect(await ended(many.id)).toMatchObject({ status: "completed", output: { all: [3, 1, 2] } });
    const none = await start(fanOut("pure", {}), { items: [] });
    expect(await ended(none.id)).toMatchObject({ status: "completed", output: { all: [] } });
  });

  test("F5 a failed branch counts at its fan-in, and its error is there; without a fan-in the run fails", async () => {
    const flow = fanOut("once", { fails: "item == 'bad'" });
    flow.nodes[2] = {
      ref: "end",
      outputMapping: { "output.failed": "fanIn.failed", "output.completed": "fanIn.completed" },
    };
    const { id } = await start(
      { ...flow, outputMapping: { all: "state.all", failed: "output.failed" } },
      { items: ["a", "bad", "c"] },
    );
    expect(await ended(id)).toMatchObject({
      status: "completed",
      output: {
        all: ["a", "c"],
        failed: [{ branchIndex: 1, error: { code: "EXECUTION_FAILED", message: '"work" fails.' } }],
      },
    });
    const alone = await start({ initialNode: "one", nodes: [task("one", "once", {}, { fails: "true" })] });
    expect(await ended(alone.id)).toMatchObject({ status: "failed", error: { code: "EXECUTION_FAILED" } });
  });

  test("F10 an attempt that fails for a passing reason is repeated under the same operation id", async () => {
    const { id, key } = await start({
      initialNode: "one",
      nodes: [task("one", "idempotent", {}, { wait: "'never'" })],
    });
    await runsOf(key, 1);
    await call("POST", `/${id}/cancel`, 200);
    expect(await ended(id)).toMatchObject({ status: "cancelled" });
  });
});

describe("A72 H1 a run whose actor dies", () => {
  test("goes on: idempotent tasks begin again under their operation ids", async () => {
    const { id, key } = await start(fanOut("idempotent", { wait: "'gate'" }), { items: [1, 2, 3] });
    await runsOf(key, 3);
    await crash();
    await openGate(key, "gate");
    expect(await ended(id)).toMatchObject({ status: "completed", output: { all: [1, 2, 3] } });
    expect(new Set((await runsOf(key)).map(({ operationId }) => operationId)).size).toBe(3);
  });

  test("takes the results of `once` tasks by name, and runs none of them twice", async () => {
    const { id, key } = await start(fanOut("once", { wait: "'gate'" }), { items: [1, 2, 3] });
    await runsOf(key, 3);
    await crash();
    await call("GET", `/${id}`, 200);
    await openGate(key, "gate");
    expect(await ended(id)).toMatchObject({ status: "completed", output: { all: [1, 2, 3] } });
    expect(await runsOf(key)).toHaveLength(3);
  });

  test("goes on by itself, with nobody who asks", async () => {
    const { id, key } = await start(fanOut("pure", { wait: "'gate'" }), { items: [1, 2] });
    await runsOf(key, 2);
    await crash();
    await openGate(key, "gate");
    await wakeRun(id);
    await runsOf(key, 4);
    expect(await ended(id)).toMatchObject({ status: "completed" });
  });
});

describe("RUNDOOR-1 RUNDOOR-2 the door of runs", () => {
  const flow = (): Flow => ({ initialNode: "one", nodes: [{ ref: "one" }] });

  test("what belongs to others is not found; operators of the tenant may read it", async () => {
    const { id } = await start(flow());
    await ended(id);
    const others: Principal[] = [
      { subject: "bob", tenant: "test", roles: ["member"] },
      { subject: "ada", tenant: "elsewhere", roles: ["admin"] },
    ];
    for (const principal of others) {
      await call("GET", `/${id}`, 404, undefined, principal);
      await call("GET", `/${id}/journal`, 404, undefined, principal);
      await call("POST", `/${id}/cancel`, 404, {}, principal);
    }
    await call("GET", `/${id}`, 200, undefined, { subject: "op", tenant: "test", roles: ["operator"] });
    await call("GET", "/run_01JD0000000000000000000000", 404);
    await call("GET", "/nothing", 404);
  });

  test("a repeated start with its key answers the same run, and another one under this key is refused", async () => {
    const workflow = await post(flow());
    const body = { workflow, input: { key: "k" }, idempotencyKey: crypto.randomUUID() };
    const first = await call("POST", "", 201, body);
    const again = await call("POST", "", 201, body);
    expect(again.id).toBe(first.id);
    const other = await call<{ code: string }>("POST", "", 409, { ...body, input: { key: "other" } });
    expect(other.code).toBe("IDEMPOTENCY_CONFLICT");
    const { id } = await call("POST", "", 201, body, { subject: "bob", tenant: "test", roles: [] });
    expect(id).not.toBe(first.id);
  });

  test("what cannot begin is refused, and says what to change", async () => {
    const workflow = await post(flow());
    const problem = (body: object, status: number) =>
      call<{ code: string; errors?: { path: string }[] }>("POST", "", status, body);
    expect(await problem({ workflow: "flows/unknown", input: {} }, 404)).toMatchObject({ code: "NOT_FOUND" });
    expect(await problem({ workflow, input: { key: 5 } }, 422)).toMatchObject({
      errors: [{ path: "/input/key" }],
    });
    expect(await problem({ workflow, inputs: {} }, 422)).toMatchObject({ code: "INVALID_INPUT" });
  });

  test("a run that is over cannot be cancelled, unless it was", async () => {
    const { id } = await start(flow());
    await ended(id);
    expect(await call<{ code: string }>("POST", `/${id}/cancel`, 409)).toMatchObject({ code: "CONFLICT" });
    const { id: other, key } = await start({
      initialNode: "one",
      nodes: [task("one", "once", {}, { wait: "'gate'" })],
    });
    await runsOf(key, 1);
    const cancelled = await call("POST", `/${other}/cancel`, 200, { reason: "Enough." });
    expect(cancelled).toMatchObject({
      status: "cancelled",
      error: { code: "CANCELLED", message: "Enough." },
      active: [],
    });
    expect(await call("POST", `/${other}/cancel`, 200)).toEqual(cancelled);
  });
});
