/** Fan-outs that are spread over several runs, on the real Worker. Its runs have at most 250 branches of a fan-out. */
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import { openGate, runsOf } from "./provider.ts";
import { call, ended, type Flow, fanOut, journal, post, start } from "./run-helpers.ts";
import { ADA, crash, request } from "./world.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

/** The fan-out of `run-helpers`, with an end that stores the result of its fan-in. */
function wide(effect: string, mapping: object, synchronization: object = {}): Flow {
  const flow = fanOut(effect, mapping, synchronization);
  const [from, work] = flow.nodes;
  return {
    ...flow,
    contextSchema: { type: "object", properties: { all: { type: "array", items: {} }, joined: {} } },
    nodes: [from ?? {}, work ?? {}, { ref: "end", outputMapping: { "state.joined": "fanIn" } }],
    outputMapping: { all: "state.all", joined: "state.joined" },
  };
}

/** Waits until a run satisfies `isSo`. The parent run names a run a moment before it exists. */
const until = (id: string, isSo: (run: RunView) => boolean): Promise<RunView> =>
  vi.waitUntil(
    async () => {
      const response = await request(`/api/runs/${id}`, {}, ADA);
      if (response.status === 404) return undefined;
      const run = (await response.json()) as RunView;
      return isSo(run) ? run : undefined;
    },
    { timeout: 20_000, interval: 20 },
  );

/** The run waits for one part only. */
const hasOnePart = ({ active }: RunView) => active.length === 1;

describe("A72 PARTS-1 PARTS-2 PARTRUN-1 PARTRUN-2 a fan-out above the width of its run", () => {
  test("ends as in its own run, also after crashes on both sides, and repeats no work", async () => {
    const { id, key } = await start(wide("once", { wait: "item == 5 || item == 500 ? 'gate' : null" }), {
      items: numbers(600),
    });
    await runsOf(key, 600);
    const { active } = await until(id, ({ active }) => active.length === 2);
    expect(active).toMatchObject([
      { node: "start", status: "waiting_for_part", path: "root.start.0-199", attempt: 1 },
      { node: "start", status: "waiting_for_part", path: "root.start.400-599", attempt: 1 },
    ]);
    expect(await call("GET", `/${active[0]?.runId}`, 200)).toMatchObject({
      status: "running",
      startedBy: "ada",
      active: [{ node: "work", path: "root.start.5" }],
    });
    expect(await journal(id)).toContainEqual(
      expect.objectContaining({ type: "fan_out.started", data: expect.objectContaining({ parts: 3 }) }),
    );
    await openGate(key, "gate");
    await crash();
    const { output } = await ended(id);
    expect(output).toEqual({
      all: numbers(600),
      joined: { total: 600, completed: 600, failed: [] },
    });
    expect(await runsOf(key)).toHaveLength(600);
  });

  test("F8 PARTS-4 counts the failures of its branches by their indexes", async () => {
    const { id } = await start(wide("once", { fails: "item == 7 || item == 507" }), { items: numbers(600) });
    const error = { code: "EXECUTION_FAILED", message: '"work" fails.' };
    expect((await ended(id)).output).toMatchObject({
      joined: {
        ...{ total: 600, completed: 598 },
        failed: [
          { branchIndex: 7, error },
          { branchIndex: 507, error },
        ],
      },
    });
  });

  test("PARTS-5 fires its fan-in for `mOfN` as soon as parts have enough together, and cancels the others", async () => {
    const flow = wide("once", { wait: "item == 5 ? 'gate' : null" }, { strategy: { mOfN: 599 } });
    const { id, key } = await start(flow, { items: numbers(600) });
    expect((await ended(id)).output).toMatchObject({ joined: { total: 600, completed: 599 } });
    expect((await runsOf(key, 600)).length).toBe(600);
  });

  test("FANIN-6 RUNPART-3 continues with the completed branches at the end of its time", async () => {
    const synchronization = { timeoutMs: 1_000, onTimeout: "proceed_with_available" };
    const flow = wide("once", { wait: "item == 5 ? 'gate' : null" }, synchronization);
    const { id } = await start(flow, { items: numbers(600) });
    const { output } = await ended(id);
    // How many have completed by then depends on the machine.
    const all = z.array(z.int()).min(1).max(599).parse(output?.all);
    expect(all).not.toContain(5);
    expect(all).toEqual(all.toSorted((one, other) => one - other));
    expect(output).toMatchObject({ joined: { total: 600, completed: all.length, failed: [] } });
  });

  test("cancels its parts with it", async () => {
    const { id, key } = await start(wide("once", { wait: "item == 5 ? 'gate' : null" }), {
      items: numbers(600),
    });
    await runsOf(key, 600);
    const { active } = await until(id, hasOnePart);
    await call("POST", `/${id}/cancel`, 200, { reason: "Enough." });
    expect(await ended(String(active[0]?.runId))).toMatchObject({
      status: "cancelled",
      error: { message: "Enough." },
    });
  });

  test("gives its width to a sub-workflow, and to a fan-out within a part", async () => {
    const inner = wide("pure", { wait: "item == 5 ? 'gate' : null" });
    const workflow = await post(inner);
    const outer: Flow = {
      nodes: [
        { ref: "start" },
        { ref: "mid", outputMapping: { "output.own": "item" } },
        { ref: "sub", workflow, inputMapping: { key: "input.key", items: "input.items" } },
        { ref: "last" },
        { ref: "end" },
      ],
      transitions: [
        {
          ...{ ref: "each", from: "start", to: "mid", siblingGroup: "g" },
          foreach: { collection: "input.items", itemVar: "item" },
        },
        { ref: "some", from: "mid", to: "sub", condition: "output.own == 7" },
        { ref: "others", from: "mid", to: "last", condition: "output.own != 7" },
        { ref: "back", from: "sub", to: "last" },
        { ref: "join", from: "last", to: "end", synchronization: { siblingGroup: "g", strategy: "all" } },
      ],
    };
    const { id, key } = await start(outer, { items: numbers(251) });
    const [part] = (await until(id, hasOnePart)).active;
    const { active } = await until(String(part?.runId), ({ active }) => active.length === 1);
    const [own] = (await until(String(active[0]?.runId), hasOnePart)).active;
    expect(own).toMatchObject({ status: "waiting_for_part", path: "root.start.0-125" });
    await openGate(key, "gate");
    await ended(id);
  });

  test("H5 PARTS-2 has 10 000 branches in 40 runs, and makes no token for each of them", async () => {
    const echo = {
      ref: "work",
      task: "flow/echo",
      inputMapping: { value: "item" },
      outputMapping: { "output.value": "result.value" },
    };
    const flow = wide("pure", {});
    const [from, , to] = flow.nodes;
    const { id } = await start({ ...flow, nodes: [from ?? {}, echo, to ?? {}] }, { items: numbers(10_000) });
    const { output, tokens } = await vi.waitUntil(
      async () => {
        const run = await call("GET", `/${id}`, 200);
        return run.status === "running" ? undefined : run;
      },
      { timeout: 60_000, interval: 200 },
    );
    expect(output).toMatchObject({ joined: { total: 10_000, completed: 10_000 } });
    expect(output?.all).toEqual(numbers(10_000));
    expect(tokens).toBeLessThan(100);
  }, 90_000);
});
