/**
 * The end of spread fan-outs: fan-ins that ask their parts for their end, and inheritance of parts. `PART_SEEDS` sets
 * the number of random orders.
 */
import { describe, expect, test } from "vitest";
import { childRunOf } from "../../src/agents/coordinator/core/child-run.ts";
import { dueIn } from "../../src/agents/coordinator/core/effects.ts";
import { CLOSE_MS } from "../../src/agents/coordinator/core/run-limits.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import { Random } from "../../src/testing/random.ts";
import { each, numbers, played, recordOf } from "../support/workflows/spread.ts";
import { PlayedTree, type TreeOptions } from "../support/workflows/tree.ts";

const SEEDS = Number(process.env.PART_SEEDS ?? 50);

const tokensOf = ({ tokens }: RunState) => [...tokens.values()].filter(({ part }) => part === true);

/** The parent run. A test plays its parts. */
class Above {
  readonly tree: PlayedTree;
  constructor(synchronization: object, items: number, width: number, more: object = {}) {
    const definition = { ...each({}, synchronization), ...more };
    this.tree = played(definition, { items: numbers(items) }, width);
  }

  get root(): RunState {
    return this.tree.root;
  }

  /** The parts that run. */
  get parts(): number[] {
    return tokensOf(this.root).map(({ scope }) => scope?.branch ?? -1);
  }

  get dueIn(): number | null {
    return dueIn(this.root, this.tree.now, this.tree.now);
  }

  sent(type: string): number {
    return this.tree.sent.filter((one) => one === type).length;
  }

  token(part: number): number {
    return tokensOf(this.root).find(({ scope }) => scope?.branch === part)?.id ?? -1;
  }

  report(part: number, completed: number, failed = 0, more: { firstArrivalAt?: number } = {}): void {
    const token = this.token(part);
    this.tree.take("run_01", { type: "part.progress", token, attempt: 1, completed, failed, ...more });
  }

  end(part: number, completed: number[], token = this.token(part)): void {
    const result = { completed, outputs: completed, failed: [] };
    this.tree.take("run_01", { type: "part.ended", token, attempt: 1, result });
  }

  lose(part: number): void {
    const outcome = { error: { code: "TOO_LARGE", message: "Its result is too large." } };
    this.tree.take("run_01", { type: "node.ended", token: this.token(part), attempt: 1, outcome });
  }

  passes(time: number): void {
    this.tree.now += time;
    this.tree.take("run_01", { type: "run.expire" });
  }
}

describe("a fan-in that asks its parts for their end", () => {
  const three = { strategy: { mOfN: 3 } };

  test("FANIN-3 PARTS-7 fails if fewer have completed than were reported, and no part is left", () => {
    const above = new Above(three, 8, 4);
    above.report(0, 3);
    expect(above.sent("part.close")).toBe(2);
    above.lose(0);
    expect(above.root.status).toBe("running");
    above.end(1, [4, 5]);
    expect(above.root).toMatchObject({ status: "failed", error: { code: "SYNC_UNSATISFIABLE" } });
    expect(above.root.error?.message).toMatch(
      /^3 of \d+ branches must complete, but only 2 can complete at the fan-in of "g"\. The first failure is from branch \d+: [A-Z_]+: ./,
    );
  });

  test("PARTS-5 PARTS-7 begins no part before the answers, and then the others if fewer have completed than were reported", () => {
    const above = new Above(three, 40, 4);
    const { made } = above.root;
    above.report(0, 3);
    for (const part of [1, 2, 3, 4, 5, 6, 7]) above.end(part, []);
    expect([above.parts, above.root.made]).toEqual([[0], made]);
    above.lose(0);
    expect([above.root.status, above.parts]).toEqual(["running", [8, 9]]);
    above.report(8, 3);
    expect(above.sent("part.close")).toBe(8 + 2);
    above.end(9, [36]);
    above.end(8, [32, 33, 34]);
    expect(above.root.state).toMatchObject({ all: [32, 33, 34], joined: { total: 40, completed: 3 } });
  });

  test("PARTS-7 is decided by the failures in the end, too", () => {
    const above = new Above({ ...three, maxFailures: 3 }, 40, 4);
    above.report(0, 3);
    above.lose(0);
    expect(above.root.status).toBe("running");
    for (const part of [1, 2, 3, 4, 5, 6, 7]) above.end(part, [part * 4]);
    expect(above.root).toMatchObject({ status: "failed", error: { code: "SYNC_UNSATISFIABLE" } });
    expect(above.root.error?.message).toMatch(
      /^4 of \d+ branches failed, but at most 3 may fail at the fan-in of "g"\. The first failure is from branch \d+: [A-Z_]+: ./,
    );
  });

  test("FANIN-6 PARTS-5 continues `CLOSE_MS` after its time without silent parts", () => {
    const sync = { timeoutMs: 1_000, onTimeout: "proceed_with_available", maxFailures: 4 };
    const above = new Above(sync, 12, 4);
    above.report(0, 1, 0, { firstArrivalAt: above.tree.now });
    expect(above.dueIn).toBe(1_000);
    above.passes(1_000);
    expect([above.sent("part.close"), above.dueIn]).toEqual([3, CLOSE_MS]);
    above.end(0, [0, 1]);
    above.lose(1);
    above.passes(CLOSE_MS - 1);
    expect([above.root.status, above.parts]).toEqual(["running", [2]]);
    above.passes(1);
    expect(above.root.status).toBe("completed");
    expect(above.sent("run.cancel")).toBe(1);
    expect(above.root.state).toMatchObject({ all: [0, 1], joined: { total: 12, completed: 2 } });
  });

  test("FANIN-6 continues at the end of its time despite failures", () => {
    const sync = { timeoutMs: 1_000, onTimeout: "proceed_with_available", maxFailures: 3 };
    const above = new Above(sync, 8, 4);
    above.report(0, 1, 0, { firstArrivalAt: above.tree.now });
    above.passes(1_000);
    above.end(0, [0]);
    above.lose(1);
    expect(above.root.state).toMatchObject({ all: [0], joined: { total: 8, completed: 1 } });
  });

  test("PARTS-5 PARTS-7 counts a silent part of `mOfN` as without completed branches, and ignores its late end", () => {
    const above = new Above({ ...three, timeoutMs: 60_000, onTimeout: "fail" }, 36, 4);
    const late = above.token(0);
    above.report(0, 3, 0, { firstArrivalAt: above.tree.now });
    expect(above.dueIn).toBe(CLOSE_MS);
    for (const part of [1, 2, 3, 4, 5, 6, 7]) above.end(part, []);
    above.passes(CLOSE_MS);
    expect([above.root.status, above.parts]).toEqual(["running", [8]]);
    above.end(0, [0, 1, 2], late);
    expect(above.parts).toEqual([8]);
    expect(above.dueIn).toBe(60_000 - CLOSE_MS);
    above.passes(60_000 - CLOSE_MS);
    expect(above.root).toMatchObject({ status: "failed", error: { code: "SYNC_TIMEOUT" } });
  });

  test("PARTS-5 asks a part for its end that begins as the time is over", () => {
    const sync = { ...three, timeoutMs: 1_000, onTimeout: "proceed_with_available" };
    const above = new Above(sync, 36, 4);
    above.report(0, 3, 0, { firstArrivalAt: above.tree.now });
    for (const part of [1, 2, 3, 4, 5, 6, 7]) above.end(part, []);
    const closed = above.sent("part.close");
    const result = { completed: [2], outputs: [2], failed: [] };
    above.tree.now += 1_000;
    // One commit takes both.
    const end = { type: "part.ended", token: above.token(0), attempt: 1, result } as const;
    above.tree.take("run_01", end, { type: "run.expire" });
    expect([above.parts, above.sent("part.close")]).toEqual([[8], closed + 1]);
    above.end(8, []);
    expect(above.root.state).toMatchObject({ all: [2], joined: { total: 36, completed: 1 } });
  });

  test("PARTS-5 skips a part of `all` with finished branches: its end is on the way", () => {
    const above = new Above({ maxFailures: 3 }, 8, 4);
    above.report(0, 4);
    above.report(1, 2, 2);
    expect([above.sent("part.close"), above.dueIn]).toEqual([0, null]);
    above.end(0, [0, 1, 2, 3]);
    above.end(1, [4, 5]);
    expect(above.root.state).toMatchObject({ all: [0, 1, 2, 3, 4, 5] });
  });

  test("PARTRUN-1 does not replace a report with an earlier report", () => {
    const above = new Above({ strategy: { mOfN: 6 }, maxFailures: 3 }, 12, 4);
    above.report(0, 2, 1);
    above.report(0, 1, 0);
    expect(above.root.fanOuts.get(0)?.branches[0]?.tally).toEqual({ completed: 2, failed: 1 });
    above.report(1, 4);
    expect(above.sent("part.close")).toBe(3);
  });

  test("PARTS-7 never continues with fewer branches than `mOfN`, whichever parts are lost", async () => {
    const ends = { completed: 0, SYNC_UNSATISFIABLE: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = new Random(seed);
      const [total, width, needed] = [random.int(4, 24), random.int(1, 3), random.int(1, 4)];
      const record = recordOf(each({}, { strategy: { mOfN: needed } }), { items: numbers(total) }, width);
      const outcome: TreeOptions["outcome"] = (_, path) => ({ output: path });
      const tree = new PlayedTree({ record, outcome, random, deaths: 0.05 });
      while (await tree.step()) {
        const parts = [...tree.runs.keys()].slice(1);
        if (parts.length > 0 && random.chance(0.35))
          tree.take(random.pick(parts), { type: "run.cancel", by: "ada" });
      }
      const { status, error, state } = tree.root;
      if (status === "completed") expect(state.joined).toMatchObject({ total, completed: needed });
      else expect([seed, error?.code]).toEqual([seed, "SYNC_UNSATISFIABLE"]);
      ends[status === "completed" ? status : "SYNC_UNSATISFIABLE"] += 1;
    }
    expect(ends.completed).toBeGreaterThan(SEEDS / 10);
    expect(ends.SYNC_UNSATISFIABLE).toBeGreaterThan(SEEDS / 10);
  });
});

describe("a part", () => {
  test("RUNPART-3 has neither the time limit of the workflow nor the time limit of the fan-in", async () => {
    const above = new Above({ timeoutMs: 500 }, 4, 2, { timeoutMs: 5_000, onTimeout: "fail" });
    const { tree } = above;
    while (tree.runs.size < 2) await tree.step();
    const [, own = ""] = [...tree.runs.keys()];
    const [token] = tree.runs.get(own)?.state.tokens.keys() ?? [];
    tree.take(own, { type: "node.ended", token: token ?? -1, attempt: 1, outcome: { output: 1 } });
    expect(tree.runs.get(own)?.state.fanOuts.get(0)?.firstArrivalAt).toBe(tree.now);
    tree.now += 10_000;
    tree.take(own, { type: "run.expire" });
    expect(tree.runs.get(own)?.state.status).toBe("running");
    tree.take("run_01", { type: "run.expire" });
    expect(tree.root).toMatchObject({ status: "timed_out", error: { code: "TIMEOUT" } });
  });

  test("PARTS-1 has the width of the run above, and spreads the wide fan-outs within", async () => {
    const nested = workflowSchema.parse({
      inputSchema: { type: "object" },
      contextSchema: { type: "object", properties: { all: {} } },
      initialNode: "start",
      nodes: [
        { ref: "start" },
        { ref: "mid" },
        { ref: "work", task: "lib/task" },
        { ref: "inner" },
        { ref: "end" },
      ],
      transitions: [
        {
          ...{ ref: "outer", from: "start", to: "mid", siblingGroup: "o" },
          foreach: { collection: "input.items", itemVar: "item" },
        },
        {
          ...{ ref: "inner", from: "mid", to: "work", siblingGroup: "i" },
          foreach: { collection: "input.items", itemVar: "other" },
        },
        {
          ...{ ref: "joinInner", from: "work", to: "inner" },
          synchronization: {
            ...{ siblingGroup: "i", strategy: "all" },
            merge: { source: "_branch.output", target: "output.own", strategy: "collect" },
          },
        },
        {
          ...{ ref: "joinOuter", from: "inner", to: "end" },
          synchronization: {
            ...{ siblingGroup: "o", strategy: "all" },
            merge: { source: "_branch.output.own", target: "state.all", strategy: "collect" },
          },
        },
      ],
    });
    const tree = played(nested, { items: numbers(3) }, 2);
    await tree.finish();
    expect(tree.root.state.all).toEqual(
      numbers(3).map((outer) => numbers(3).map((inner) => `root.start.${outer}.mid.${inner}`)),
    );
    // Two parts of the outer fan-out, and two of each inner fan-out.
    const parts = [...tree.runs.values()].map(({ state }) => state.record).slice(1);
    expect(parts.map(({ width }) => width)).toEqual(Array.from({ length: 2 + 3 * 2 }, () => 2));
  });

  test("PARTS-1 and a sub-run begin with the width of the run above", () => {
    expect(childRunOf(new Above({}, 3, 2).root, 1, 1).width).toBe(2);
    const definition = workflowSchema.parse({
      ...{ inputSchema: { type: "object" }, initialNode: "sub" },
      nodes: [{ ref: "sub", workflow: "lib/sub" }],
    });
    const record = recordOf(definition, {}, 2);
    const { workflow } = record;
    const above = new PlayedTree({
      record: { ...record, workflow: { ...workflow, workflows: { sub: recordOf(each(), {}, 2).workflow } } },
      outcome: () => ({ output: null }),
      random: new Random(1),
    });
    expect(childRunOf(above.root, 0, 1).width).toBe(2);
  });
});
