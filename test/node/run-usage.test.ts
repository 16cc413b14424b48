/** The usage of runs, as their core counts it. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { headOf, spentIn } from "../../src/agents/coordinator/core/head.ts";
import { runEnvelopes } from "../../src/agents/coordinator/core/run-envelopes.ts";
import type { RunSignal } from "../../src/agents/coordinator/core/signals.ts";
import type { NodeOutcome } from "../../src/agents/coordinator/core/state.ts";
import { type Amounts, addAmounts, NOTHING } from "../../src/model/spending.ts";
import { amountOf, spendingView } from "../../src/protocol/budget.ts";
import type { PinnedNodeTask } from "../../src/protocol/pinned-workflow.ts";
import { RUN_ENDED } from "../../src/protocol/run-call.ts";
import { amountsOfModels, type TaskModelUsage } from "../../src/protocol/task-summary.ts";
import { PlayedRun } from "../support/workflows/play.ts";

const RETRIED: PinnedNodeTask = {
  library: "lib",
  id: "task",
  effect: "pure",
  timeoutMs: 60_000,
  retry: { maxAttempts: 3, backoffMs: 0 },
};

/** A fan-out over `input.items` with tasks that have three attempts. `sync` is of its fan-in. */
const fan = (items: number[], sync: object = {}) =>
  new PlayedRun(
    {
      initialNode: "start",
      nodes: [{ ref: "start" }, { ref: "work", task: "task" }, { ref: "end", task: "task" }],
      transitions: [
        {
          from: "start",
          to: "work",
          siblingGroup: "g",
          foreach: { collection: "input.items", itemVar: "item" },
        },
        { from: "work", to: "end", synchronization: { siblingGroup: "g", strategy: "all", ...sync } },
      ],
    },
    { items },
    RETRIED,
  );

/** Returns a signal with the record of a task that has used models. */
function withModels(signal: RunSignal, models: TaskModelUsage | undefined): RunSignal {
  if (signal.type !== "node.ended" || models === undefined) return signal;
  const task = { library: "lib", id: "task", version: 1 };
  return { ...signal, task: { task, steps: [], durationMs: 1, models } };
}

const OK: NodeOutcome = { output: {} };
const FAILED: NodeOutcome = { error: { code: "FAILED", message: "It fails." } };
const USED: TaskModelUsage = { calls: 1, inputTokens: 10, outputTokens: 5, costUsd: 0.25 };
const SPENT: Amounts = { tokens: 15, nanoDollars: 250_000_000, toolCalls: 0, modelCalls: 1 };
const OF_AGENT: Amounts = { tokens: 7, nanoDollars: 3, toolCalls: 2, modelCalls: 1 };

const models = fc.record({
  calls: fc.integer({ min: 1, max: 5 }),
  inputTokens: fc.nat(1_000),
  outputTokens: fc.nat(1_000),
  costUsd: fc.integer({ min: 0, max: 1_000 }).map((cents) => cents / 100),
});

describe("RUNUSE-1 the usage of a run", () => {
  const step = fc.record({
    place: fc.nat(),
    fails: fc.boolean(),
    used: fc.option(models, { nil: undefined }),
    /** Repeated earlier signals, by their distance. */
    again: fc.array(fc.nat(10), { maxLength: 3 }),
    ofCall: fc.option(fc.constant(OF_AGENT), { nil: undefined }),
  });

  test("is the sum of its attempts and calls, each once, despite repeated ends", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const run = fan([1, 2, 3]);
        const sent: RunSignal[] = [];
        let expected = NOTHING;
        for (const { place, fails, used, again, ofCall } of steps) {
          const [node] = ["work", "end"].filter((ref) => run.at(ref).length > 0);
          if (node === undefined) break;
          const ending = run.ending(node, fails ? FAILED : OK, place % run.at(node).length);
          const signal = { ...withModels(ending, used), transient: true } as const;
          const calls = ofCall === undefined ? [] : [{ type: "run.used", spent: ofCall } as const];
          const repeated = again.flatMap((distance) => sent.at(-1 - distance) ?? []);
          run.take(...repeated, ...calls, signal, signal);
          sent.push(signal);
          expected = addAmounts(addAmounts(expected, used ? amountsOfModels(used) : {}), ofCall ?? {});
          run.take(...repeated, signal);
        }
        expect(run.state.spent ?? NOTHING).toEqual(expected);
        expect(spentIn(headOf(run.state)) ?? NOTHING).toEqual(expected);
      }),
    );
  });

  test("changes no row of a run with tasks that use no models", () => {
    const run = fan([1]);
    const before = run.entries.length;
    run.take(run.ending("work", OK));
    expect(run.state).not.toHaveProperty("spent");
    expect(headOf(run.state)).not.toHaveProperty("u");
    expect(run.entries.slice(before).map(({ type }) => type)).not.toContain("usage.counted");
  });

  test("is shown in the units of budgets, and read back exactly", () => {
    fc.assert(
      fc.property(models, (used) => {
        const amounts = amountsOfModels(used);
        const { usd, ...counts } = spendingView(amounts);
        expect({ ...counts, nanoDollars: amountOf(usd, "usd") }).toEqual(amounts);
      }),
    );
  });
});

describe("RUNUSE-2 reports", () => {
  test("that arrive with the end of the run count, later reports do not", () => {
    const run = fan([1, 2, 3], { maxFailures: 0 });
    const [first, second, third] = [0, 1, 2].map((index) =>
      withModels(run.ending("work", index === 0 ? FAILED : OK, index), USED),
    );
    if (first === undefined || second === undefined || third === undefined) throw new Error("Three work.");
    run.take(first, second);
    expect(run.state).toMatchObject({ status: "failed", spent: addAmounts(SPENT, SPENT) });
    expect(run.take(third, { type: "run.used", spent: OF_AGENT })).toBeNull();
  });

  test("of a call without a waiting token have their own entry", () => {
    const run = fan([1, 2]);
    expect(run.take({ type: "run.used", spent: OF_AGENT })?.entries).toEqual([{ type: "usage.counted" }]);
    expect(run.state.spent).toEqual(OF_AGENT);
  });
});

test.each(["completed", "failed", "cancelled"])(
  "RUNUSE-3 the end of a run that is %s reports it to the parent",
  (how) => {
    const run = new PlayedRun({ initialNode: "a", nodes: [{ ref: "a", task: "task" }] });
    const operationId = `op_${run.state.record.stem}0000000`;
    const parent = { runId: "run_0", rootRunId: "run_0", operationId, attempt: 1 };
    run.state = { ...run.state, record: { ...run.state.record, parent } };
    run.take({ type: "run.used", spent: OF_AGENT });
    const before = run.state;
    const change = run.take(
      how === "cancelled"
        ? { type: "run.cancel", by: "ada" }
        : run.ending("a", how === "failed" ? FAILED : OK),
    );
    expect(run.state.status).toBe(how);
    const [end] = change === null ? [] : runEnvelopes(before, change);
    expect(end).toMatchObject({ type: RUN_ENDED, body: { spent: OF_AGENT } });
  },
);
