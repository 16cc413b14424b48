/** Runs of workflows on the real Worker: started over HTTP, worked by the Executor, killed, cancelled, and read again. */
import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import type { Principal } from "../../src/shared/principal.ts";
import { openGate, runsOf, ServedDocument } from "./provider.ts";
import { call, ended, type Flow, fanOut, journal, post, start, task, wakeRun } from "./run-helpers.ts";
import { crash, request } from "./world.ts";

describe("a run", () => {
  test("F1 RUNJOURNAL-1 of one node gives its output, and its journal records its steps", async () => {
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

  test("F10 a task that fails for a passing reason is tried again as its `retry` says", async () => {
    const shop = new ServedDocument();
    await shop.set(null);
    const get = { kind: "http.request", hosts: [new URL(env.PROVIDER_CONTROL_URL).host], effect: "pure" };
    const definition = {
      id: `ask_${crypto.randomUUID().slice(0, 8)}`,
      inputSchema: { type: "object", properties: { url: { type: "string" } }, required: ["url"] },
      retry: { maxAttempts: 5, backoff: "none", initialDelayMs: 300 },
      steps: [
        {
          ref: "get",
          action: get,
          inputMapping: { url: "input.url" },
          outputMapping: { "output.body": "result.body" },
        },
      ],
    };
    const init = { method: "POST", body: JSON.stringify(definition) };
    expect((await request("/api/libraries/flows/tasks", init)).status).toBe(201);
    const { id } = await start({
      initialNode: "one",
      nodes: [{ ref: "one", task: `flows/${definition.id}`, inputMapping: { url: `"${shop.url}"` } }],
    });
    await expect
      .poll(async () => (await journal(id)).filter(({ type }) => type === "task.retried").length)
      .toBeGreaterThan(0);
    await shop.set("open");
    expect(await ended(id)).toMatchObject({ status: "completed" });
    const completed = (await journal(id)).find(({ type }) => type === "task.completed");
    expect(completed?.data).toMatchObject({ output: { body: "open" } });
  });

  test("RUNDENIED-1 a task that a rule denies fails, and the journal names the rule", async () => {
    const inputMapping = { order: "'1'", strict: "false", prices: "'http://2130706433:9/'" };
    const nodes = [{ ref: "one", task: "test/bill", inputMapping }];
    const { id } = await start({ initialNode: "one", nodes });
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "PERMISSION_DENIED" } });
    const entries = (await journal(id)).filter(({ type }) => /^policy|^task.failed/.test(type));
    expect(entries).toMatchObject([
      { type: "policy.denied", node: "one", data: { attempt: 1, rule: "network" } },
      { type: "task.failed", node: "one" },
    ]);
  });

  test("F10 a task of a function is retried up to its `retry`, under one operation id", async () => {
    const flow = (flaky: string): Flow => ({
      initialNode: "one",
      nodes: [task("one", "idempotent", {}, { flaky })],
    });
    const passing = await start(flow("2"));
    expect(await ended(passing.id)).toMatchObject({ status: "completed" });
    const operations = (await runsOf(passing.key, 3)).map(({ operationId }) => operationId);
    expect(operations).toEqual([operations[0], operations[0], operations[0]]);
    const failing = await start(flow("3"));
    expect(await ended(failing.id)).toMatchObject({ status: "failed", error: { code: "EXECUTION_FAILED" } });
    expect(await runsOf(failing.key, 3)).toHaveLength(3);
  });
});

describe("A72 H1 a run with an actor that dies", () => {
  test("continues: idempotent tasks begin again under their operation ids", async () => {
    const { id, key } = await start(fanOut("idempotent", { wait: "'gate'" }), { items: [1, 2, 3] });
    await runsOf(key, 3);
    await crash();
    await openGate(key, "gate");
    expect(await ended(id)).toMatchObject({ status: "completed", output: { all: [1, 2, 3] } });
    expect(new Set((await runsOf(key)).map(({ operationId }) => operationId)).size).toBe(3);
  });

  test("takes the results of `once` tasks by name, and runs each task once", async () => {
    const { id, key } = await start(fanOut("once", { wait: "'gate'" }), { items: [1, 2, 3] });
    await runsOf(key, 3);
    await crash();
    await call("GET", `/${id}`, 200);
    await openGate(key, "gate");
    expect(await ended(id)).toMatchObject({ status: "completed", output: { all: [1, 2, 3] } });
    expect(await runsOf(key)).toHaveLength(3);
  });

  test("continues without a request", async () => {
    const { id, key } = await start(fanOut("pure", { wait: "'gate'" }), { items: [1, 2] });
    await runsOf(key, 2);
    await crash();
    await openGate(key, "gate");
    await wakeRun(id);
    await runsOf(key, 4);
    expect(await ended(id)).toMatchObject({ status: "completed" });
  });
});

describe("RUNACCESS-1 RUNACCESS-2 the door of runs", () => {
  const flow = (): Flow => ({ initialNode: "one", nodes: [{ ref: "one" }] });

  test("runs of other users are not found; operators of the tenant may read them", async () => {
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

  test("a repeated start with its key answers the same run, and a different start with this key is refused", async () => {
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

  test("invalid starts are refused with the fix", async () => {
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
    expect((await journal(other)).at(-1)).toMatchObject({ type: "workflow.cancelled", data: { by: "ada" } });
    expect(await call("POST", `/${other}/cancel`, 200)).toEqual(cancelled);
  });
});
