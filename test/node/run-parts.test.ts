/** Fan-outs that are spread over several runs. `PART_SEEDS` sets the number of random workflows. */
import { describe, expect, test } from "vitest";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { soundnessIssues } from "../../src/library/workflows/soundness/check.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import type { WorkflowDefinition } from "../../src/protocol/workflow-definition.ts";
import { canonicalJson, type Json, type JsonObject } from "../../src/shared/json.ts";
import { fingerprint } from "../../src/shared/text.ts";
import { Random } from "../../src/testing/random.ts";
import { generate } from "../support/workflows/generate.ts";
import { run } from "../support/workflows/interpreter.ts";
import type { TaskOutcome } from "../support/workflows/run.ts";
import { each, numbers, played, recordOf } from "../support/workflows/spread.ts";
import { PlayedTree, type TreeOptions } from "../support/workflows/tree.ts";

const SEEDS = Number(process.env.PART_SEEDS ?? 50);
/** Returns the outcome of a run as text. */
const fateOf = (fate: {
  status: string;
  state: Json;
  output?: JsonObject;
  error?: { code: string } | null;
}): string =>
  canonicalJson({
    status: fate.status,
    ...(fate.status === "completed"
      ? { state: fate.state, output: fate.output ?? {} }
      : { code: fate.error?.code ?? "" }),
  });

/** Outcomes that depend only on the place, so that they are independent of the order of steps. */
const outcomeOf =
  (seed: number, failing: number): TreeOptions["outcome"] =>
  (node, path, attempt) => {
    const own = new Random(Number.parseInt(fingerprint(`${seed} ${node} ${path} ${attempt}`), 16));
    if (own.chance(failing)) return { failure: { code: "FAILED", message: "It fails." } };
    const flags = own.list(6, (at) => [`c${at}`, own.chance(0.5)] as const);
    const items = own.list(own.int(0, 5), (at) => at);
    return { output: { ...Object.fromEntries(flags), items, v: own.pick<Json>([1, [1, 2], {}]) } };
  };

test("PARTS-1 RUNPART-1 RUNPART-2 RUNSTORE-3 for every width and any crashes, a spread run ends as the reference interpreter may end", async () => {
  const failing: object[] = [];
  const seen = { spread: 0, runs: 0, completed: 0, failed: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const made = generate(new Random(seed));
    if (soundnessIssues(made, () => null).length > 0) continue;
    // A separate test covers time.
    const definition: WorkflowDefinition = structuredClone(made);
    for (const { synchronization } of definition.transitions) delete synchronization?.timeoutMs;
    const random = new Random(seed).fork("parts");
    const outcome = outcomeOf(seed, random.pick([0, 0, 0.15]));
    const input = { a: "a" };
    const possible = new Set<string>();
    for (let order = 0; order < 60; order++) {
      const picks = random.fork(`order ${order}`);
      const taskOutcome = (node: string, path: string, attempt: number): TaskOutcome =>
        outcome(node, path, attempt);
      const pick = (choices: readonly unknown[]) => picks.int(0, choices.length - 1);
      possible.add(fateOf(run(definition, input, { taskOutcome, pick })));
    }
    for (const width of [1, 2, 3, 1_000]) {
      const tree = new PlayedTree({
        record: recordOf(definition, input, width),
        ...{ outcome, random: random.fork(`width ${width}`), deaths: 0.05 },
      });
      await tree.finish();
      const fate = fateOf(tree.root);
      if (!possible.has(fate) && tree.root.error?.code !== "RECOVERY_EXHAUSTED")
        failing.push({ seed, width, fate, possible: [...possible].slice(0, 3) });
      const open = [...tree.runs.values()].filter(({ state }) => state.tokens.size + state.fanOuts.size > 0);
      if (open.length > 0) failing.push({ seed, width, open: open.length });
      if (tree.runs.size > 1) seen.spread += 1;
      seen.runs += tree.runs.size - 1;
      if (tree.root.status === "completed") seen.completed += 1;
      else seen.failed += 1;
    }
  }
  if (process.env.PART_SEEDS !== undefined) console.log(seen);
  expect(failing).toEqual([]);
  expect(seen.spread).toBeGreaterThan(SEEDS / 10);
  expect(seen.runs).toBeGreaterThan(seen.spread);
  expect(seen.failed).toBeGreaterThan(0);
}, 300_000);

const partOf = ({ record }: RunState) => record.part;

describe("a fan-out", () => {
  test("PARTS-1 stays in its run up to the width, and is divided as equally as can be above it", async () => {
    const whole = played(each(), { items: numbers(4) }, 4);
    await whole.finish();
    expect(whole.runs.size).toBe(1);
    const tree = played(each(), { items: numbers(9) }, 4);
    await tree.finish();
    const parts = [...tree.runs.values()].flatMap(({ state }) => partOf(state) ?? []);
    expect(parts.map(({ first, total }) => [first, total]).toSorted()).toEqual([
      [0, 9],
      [3, 9],
      [6, 9],
    ]);
    expect(tree.root.output).toMatchObject({ all: numbers(9).map((index) => `root.start.${index}`) });
    expect(tree.root.made.tokens).toBe(1 + 3 + 1);
  });

  test("PARTS-2 waits for eight parts at once", async () => {
    const tree = played(each(), { items: numbers(30) }, 1);
    await tree.finish();
    expect([tree.runs.size, tree.openParts]).toEqual([31, 8]);
    expect(tree.root.output).toMatchObject({ joined: { total: 30, completed: 30 } });
  });

  test("PARTS-1 without a fan-in ends with its parts", async () => {
    const tree = played(each({}, null), { items: numbers(5) }, 2);
    await tree.finish();
    expect(tree.root.status).toBe("completed");
    const failing = played(each({}, null), { items: numbers(5) }, 2, () => ({
      failure: { code: "FAILED", message: "It fails." },
    }));
    await failing.finish();
    expect(failing.root).toMatchObject({ status: "failed", error: { code: "FAILED" } });
  });

  test.each<[string, JsonObject, object, string]>([
    ["branches", { items: numbers(100_001) }, {}, "create 100001 tokens"],
    ["items", { items: Array.from({ length: 20 }, () => "x".repeat(900_000)) }, {}, "The items of"],
    [
      "the values that its nodes read",
      { items: numbers(20), big: "x".repeat(5_000_000) },
      { inputMapping: { item: "item", big: "input.big" } },
      "would begin with",
    ],
  ])("PARTS-3 with too much of %s is refused before it begins", (_, input, effects, message) => {
    const { root } = played(each(effects), input, 10);
    expect(root).toMatchObject({ status: "failed", error: { code: "TOO_LARGE" } });
    expect(root.error?.message).toContain(message);
    expect(root.made.fanOuts).toBe(0);
  });

  test("ROUTE-3 PARTS-1 over 50 000 items begins with parts of at most its width", async () => {
    const items = numbers(50_000).map((index) => ({ index, text: "x".repeat(280) }));
    const tree = played(each(), { items }, 1_000);
    expect(tree.root.status).toBe("running");
    expect([tree.root.tokens.size, tree.root.made.tokens]).toEqual([8, 9]);
    while (tree.runs.size < 2) await tree.step();
    const [, { state }] = [...tree.runs.values()] as [unknown, { state: RunState }];
    expect(state.fanOuts.get(0)?.branches).toHaveLength(1_000);
    const [token] = state.tokens.values();
    expect(token?.items).toEqual({ item: items[state.record.part?.first ?? -1] });
  });

  test("PARTS-4 counts the failure of a part's run as the failure of its branches", async () => {
    const tree = played(each(), { items: numbers(6) }, 2);
    while (tree.runs.size < 4) await tree.step();
    const [, lost = ""] = [...tree.runs.keys()];
    const first = tree.runs.get(lost)?.state.record.part?.first ?? -1;
    tree.take(lost, { type: "run.cancel", by: "ada", reason: "No." });
    await tree.finish();
    const error = { code: "CANCELLED", message: "No." };
    expect(tree.root.state.joined).toEqual({
      ...{ total: 6, completed: 4 },
      failed: [
        { branchIndex: first, error },
        { branchIndex: first + 1, error },
      ],
    });
  });

  test("PARTS-6 with too large parts together fails by name", async () => {
    const tree = played(each(), { items: numbers(6) }, 1, () => ({ output: "x".repeat(4_000_000) }));
    await tree.finish();
    expect(tree.root).toMatchObject({ status: "failed", error: { code: "TOO_LARGE" } });
  });

  test.each([1, 2, 4, 8])(
    "PARTS-6 counts only branches that `mOfN` merges, at a width of %i",
    async (width) => {
      const outcome = () => ({ output: "x".repeat(4_000_000) });
      const tree = played(each({}, { strategy: { mOfN: 2 } }), { items: numbers(8) }, width, outcome);
      await tree.finish();
      expect(tree.root.state.joined).toMatchObject({ total: 8, completed: 2 });
    },
  );

  test("PARTRUN-1 reports a part before its end only if its fan-in depends on it", async () => {
    const all = played(each(), { items: numbers(6) }, 3);
    await all.finish();
    expect(all.sent).not.toContain("part.progress");
    const some = played(each({}, { strategy: { mOfN: 4 } }), { items: numbers(6) }, 3);
    await some.finish();
    expect(some.sent).toContain("part.progress");
    expect(some.root.state.joined).toMatchObject({ total: 6, completed: 4 });
  });

  test("PARTREAD-1 gives its parts only the members that their nodes read", async () => {
    const read = { inputMapping: { item: "item", a: "input.a", s: "size(state.other)" } };
    const tree = played(each(read), { items: numbers(4), a: 1, b: 2 }, 2);
    while (tree.runs.size < 2) await tree.step();
    const [, { state }] = [...tree.runs.values()] as [unknown, { state: RunState }];
    expect(state.record.input).toEqual({ a: 1 });
    const whole = played(each({ inputMapping: { all: "input.map(k, k)" } }), { items: [1, 2, 3], a: 1 }, 2);
    while (whole.runs.size < 2) await whole.step();
    const [, { state: other }] = [...whole.runs.values()] as [unknown, { state: RunState }];
    expect(other.record.input).toEqual({ items: [1, 2, 3], a: 1 });
    // Words in texts and members of items are no areas.
    const words = { inputMapping: { text: '"Take this input: " + string(item)', is: "has(input.a)" } };
    const texts = played(each(words), { items: numbers(4), a: 1, b: 2 }, 2);
    while (texts.runs.size < 2) await texts.step();
    const [, { state: named }] = [...texts.runs.values()] as [unknown, { state: RunState }];
    expect(named.record.input).toEqual({ a: 1 });
  });

  test("PARTREAD-1 gives its parts the members that `has` reads after an item", async () => {
    const input = { items: ["a", "b", "c", "d"], rows: { a: { x: 1 }, b: {}, c: { x: 2 }, d: {} } };
    const results = [2, 100].map(async (width) => {
      const tree = played(each({ outputMapping: { "output.r": "has(input.rows[item].x)" } }), input, width);
      await tree.finish();
      return tree.root.output?.all;
    });
    const [spread, whole] = await Promise.all(results);
    expect(spread).toEqual([true, false, true, false].map((r) => ({ r })));
    expect(whole).toEqual(spread);
  });

  test("PARTS-3 that is open with others has no more branches with them than one may have", async () => {
    const definition = workflowSchema.parse({
      ...{ inputSchema: { type: "object" }, initialNode: "start" },
      nodes: [{ ref: "start" }, { ref: "each" }, { ref: "work", task: "lib/task", inputMapping: {} }],
      transitions: [
        { from: "start", to: "each", siblingGroup: "outer", spawnCount: 3 },
        {
          ...{ from: "each", to: "work", siblingGroup: "inner" },
          foreach: { collection: "input.items", itemVar: "item" },
        },
      ],
    });
    const { root } = played(definition, { items: Array.from({ length: 40_000 }, () => 0) }, 1_000);
    expect(root.status).toBe("failed");
    expect(root.error).toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringContaining("and other open fan-outs have 80000"),
    });
  });

  test("PARTRUN-1 reports only the parts that a fan-in may depend on", async () => {
    const sent = async (synchronization: object) => {
      const tree = played(each({}, synchronization), { items: numbers(12) }, 4);
      await tree.finish();
      return tree.sent.filter((type) => type === "part.progress");
    };
    expect(await sent({ maxFailures: 5 })).toEqual([]);
    expect(await sent({ strategy: { mOfN: 12 } })).not.toEqual([]);
  });
});
