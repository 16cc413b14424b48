/** The views of large runs: no answer has more than an actor can send. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import type { DeadLetter } from "../../src/agents/base/mailbox/dead-letter.ts";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import { type ChildRunApi, MAX_TREE_RUNS, TREE_SHARE } from "../../src/protocol/run-call.ts";
import type { RunEntryView, RunView } from "../../src/protocol/run-schemas.ts";
import { call, ended, post, start } from "./run-helpers.ts";
import { request } from "./world.ts";

const BIG = "x".repeat(900_000);

async function ask(): Promise<string> {
  const id = `ask_${crypto.randomUUID().slice(0, 8)}`;
  const steps = [{ ref: "ask", action: { kind: "human.input", prompt: "What?" } }];
  const body = JSON.stringify({ id, inputSchema: { type: "object" }, steps });
  expect((await request("/api/libraries/flows/tasks", { method: "POST", body })).status).toBe(201);
  return `flows/${id}`;
}

const until = (id: string, isSo: (run: RunView) => boolean): Promise<RunView> =>
  vi.waitUntil(
    async () => {
      const run = await call("GET", `/${id}`, 200);
      return isSo(run) ? run : undefined;
    },
    { timeout: 20_000, interval: 20 },
  );

describe("RUNVIEW-1 a run with large content", () => {
  test("shows its first gates, and others once these are answered", async () => {
    const { id } = await start(
      {
        inputSchema: { type: "object" },
        nodes: [{ ref: "start" }, { ref: "ask", task: await ask(), inputMapping: { doc: "input.big" } }],
        transitions: [{ from: "start", to: "ask", siblingGroup: "g", spawnCount: 40 }],
      },
      { big: BIG },
    );
    const { gates } = await until(id, ({ active }) => active.length === 40);
    expect(gates.length).toBeGreaterThan(0);
    expect(gates.length).toBeLessThan(10);
    const answered = gates[0]?.operationId;
    const after = await call("POST", `/${id}/gates/${answered}`, 200, { answer: "Nothing." });
    expect(after.gates.map(({ operationId }) => operationId)).not.toContain(answered);
    expect(after.gates).toHaveLength(gates.length);
    await call("POST", `/${id}/cancel`, 200);
  });

  test("has pages of its journal, and names the values of its state that are left out", async () => {
    const refs = Array.from({ length: 14 }, (_, index) => `n${index}`);
    const { id } = await start(
      {
        inputSchema: { type: "object" },
        initialNode: "n0",
        contextSchema: {
          type: "object",
          properties: Object.fromEntries(refs.map((ref) => [ref, { type: "string" }])),
        },
        nodes: refs.map((ref) => ({ ref, outputMapping: { [`state.${ref}`]: "input.big" } })),
        transitions: refs.slice(1).map((to, index) => ({ from: `n${index}`, to })),
      },
      { big: BIG },
    );
    const { state, omitted = [] } = await ended(id);
    expect(Object.keys(state).toSorted()).toEqual(refs.toSorted());
    expect(omitted.length).toBeGreaterThan(0);
    for (const ref of refs) expect(state[ref]).toBe(omitted.includes(ref) ? null : BIG);
    const seqs: number[] = [];
    let cursor = "";
    do {
      const page = await call<{ entries: RunEntryView[]; nextCursor?: string }>(
        "GET",
        `/${id}/journal?limit=200${cursor}`,
        200,
      );
      seqs.push(...page.entries.map(({ seq }) => seq));
      cursor = page.nextCursor === undefined ? "" : `&cursor=${page.nextCursor}`;
    } while (cursor !== "");
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect(seqs.length).toBe((await call("GET", `/${id}`, 200)).seq);
  });
});

describe("SUBRUN-5 the runs below one run", () => {
  const around = (workflow: string) => ({
    nodes: [{ ref: "start" }, { ref: "inner", workflow, inputMapping: { key: "input.key" } }],
    transitions: [{ from: "start", to: "inner" }],
  });
  // SAFETY: the classes of the application are among the exports.
  const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
  const admitted = (id: string, count?: number) =>
    runInDurableObject(Coordinator.getByName(`test:${id}`), (_, { storage }) => {
      if (count !== undefined) storage.kv.put("run:admitted", count);
      return storage.kv.get("run:admitted");
    });

  test("I2 TREESHARE-2 begin when there is room for them, and a cancellation overtakes waiting starts", async () => {
    const workflow = await post({ nodes: [{ ref: "start" }] });
    const { nodes } = around(workflow);
    const transitions = [{ from: "start", to: "inner", siblingGroup: "g", spawnCount: 66 }];
    const wide = await post({ nodes, transitions });
    const begin = () => call("POST", "", 201, { workflow: wide, input: { key: "k" } });
    const { id, active } = await begin();
    const waits = active.filter(({ status }) => status === "waiting_for_subworkflow");
    expect([active.length, waits.length]).toEqual([66, TREE_SHARE.runs]);
    expect(await ended(id, 60_000)).toMatchObject({ status: "completed" });
    expect(await admitted(id)).toBe(66);
    const other = await begin();
    await call("POST", `/${other.id}/cancel`, 200);
    expect(await ended(other.id, 60_000)).toMatchObject({ status: "cancelled", active: [] });
    expect((await admitted(other.id)) ?? 0).toBeLessThanOrEqual(TREE_SHARE.runs);
  }, 90_000);

  test("are counted over all depths, and have a limit", async () => {
    const leaf = await post({ nodes: [{ ref: "start" }] });
    const two = around(await post(around(leaf)));
    const { id } = await start(two);
    await ended(id);
    expect(await admitted(id)).toBe(2);
    const gate = { ref: "ask", task: await ask() };
    const { nodes, transitions } = two;
    const held = await start({
      nodes: [...nodes, gate],
      transitions: [{ from: "start", to: "ask" }, ...transitions.map(({ to }) => ({ from: "ask", to }))],
    });
    const { gates } = await until(held.id, ({ status }) => status === "waiting");
    await admitted(held.id, MAX_TREE_RUNS - 1);
    await call("POST", `/${held.id}/gates/${gates[0]?.operationId}`, 200, { answer: "Go on." });
    const { status, error } = await ended(held.id);
    expect([status, error?.code]).toEqual(["failed", "BUDGET_EXCEEDED"]);
    expect(error?.message).toContain("Fan out over fewer sub-workflows");
  });

  test("SUBRUN-4 count once, however often their start arrives, and the last of them is not refused", async () => {
    const { id } = await start({ nodes: [{ ref: "start" }] });
    await ended(id);
    // SAFETY: the class implements it.
    const root = Coordinator.getByName(`test:${id}`) as unknown as ChildRunApi;
    await admitted(id, MAX_TREE_RUNS - 1);
    for (const _ of ["first", "again"]) expect(await root.admitRun("run_a")).toMatchObject({ ok: true });
    expect(await admitted(id)).toBe(MAX_TREE_RUNS);
    expect(await root.admitRun("run_b")).toMatchObject({ ok: false, error: { code: "BUDGET_EXCEEDED" } });
  });
});

test("RUNVIEW-2 a run whose end did not reach the run above says so, until it is delivered again", async () => {
  const leaf = await post({
    nodes: [{ ref: "start" }, { ref: "ask", task: await ask() }],
    transitions: [{ from: "start", to: "ask" }],
  });
  const above = await start({
    nodes: [{ ref: "start" }, { ref: "inner", workflow: leaf, inputMapping: { key: "input.key" } }],
    transitions: [{ from: "start", to: "inner" }],
  });
  const { active } = await until(above.id, (run) => run.active.some(({ runId }) => runId !== undefined));
  const id = active.find(({ runId }) => runId !== undefined)?.runId ?? expect.fail("no run below");
  await until(id, ({ gates }) => gates.length > 0);
  expect(await call("GET", `/${id}`, 200)).not.toHaveProperty("issues");
  const operationId = newOperationId();
  const letter: DeadLetter = {
    ...{ status: "unknown", attempt: 10, unanswered: true, diedAt: Date.now() },
    error: { code: "UNAVAILABLE", message: "The actor did not answer.", retriable: true },
    envelope: {
      ...{ operationId, type: "run.ended", sentAt: Date.now(), body: {} },
      from: { kind: "coordinator", tenant: "test", id },
      to: { kind: "coordinator", tenant: "test", id: above.id },
    },
  };
  // SAFETY: the classes of the application are among the exports.
  const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
  const stub = Coordinator.getByName(`test:${id}`);
  await runInDurableObject(stub, (_, { storage }) => {
    storage.sql.exec(
      "CREATE TABLE mailbox_dead_letters (operation_id TEXT PRIMARY KEY, letter TEXT NOT NULL) WITHOUT ROWID",
    );
    const insert = "INSERT INTO mailbox_dead_letters (operation_id, letter) VALUES (?, ?)";
    storage.sql.exec(insert, operationId, JSON.stringify(letter));
    const other = { ...letter, envelope: { ...letter.envelope, type: "run.start" } };
    for (const older of Array.from({ length: 60 }, (_, n) => `op_${String(n).padStart(26, "0")}`))
      storage.sql.exec(insert, older, JSON.stringify(other));
  });
  // The actor has read that it has no such table.
  await evictDurableObject(stub);
  const { issues } = await call("GET", `/${id}`, 200);
  expect(issues).toEqual([
    { code: "UNDELIVERED", deadLetter: operationId, message: expect.stringContaining(`"${above.id}"`) },
  ]);
  expect(issues?.[0]?.message).toContain("(UNAVAILABLE)");
  expect(issues?.[0]?.message).not.toContain("The actor did not answer.");
  await runInDurableObject(stub, (_, { storage }) => storage.sql.exec("DELETE FROM mailbox_dead_letters"));
  expect(await call("GET", `/${id}`, 200)).not.toHaveProperty("issues");
  await call("POST", `/${above.id}/cancel`, 200);
});
