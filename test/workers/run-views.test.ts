/** The views of large runs: no answer has more than an actor can send. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import type { RunEntryView, RunView } from "../../src/protocol/coordinator-api.ts";
import { MAX_TREE_RUNS, TREE_ROOM } from "../../src/protocol/run-call.ts";
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

  test("I2 TREEROOM-2 begin as there is room for them, and a cancellation overtakes those that wait", async () => {
    const workflow = await post({ nodes: [{ ref: "start" }] });
    const { nodes } = around(workflow);
    const transitions = [{ from: "start", to: "inner", siblingGroup: "g", spawnCount: 66 }];
    const wide = await post({ nodes, transitions });
    const begin = () => call("POST", "", 201, { workflow: wide, input: { key: "k" } });
    const { id, active } = await begin();
    const waits = active.filter(({ status }) => status === "waiting_for_subworkflow");
    expect([active.length, waits.length]).toEqual([66, TREE_ROOM.runs]);
    expect(await ended(id, 60_000)).toMatchObject({ status: "completed" });
    expect(await admitted(id)).toBe(66);
    const other = await begin();
    await call("POST", `/${other.id}/cancel`, 200);
    expect(await ended(other.id, 60_000)).toMatchObject({ status: "cancelled", active: [] });
    expect((await admitted(other.id)) ?? 0).toBeLessThanOrEqual(TREE_ROOM.runs);
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
});
