/** Trees of calls under seeded faults: up to 20 agents on four levels, crashes at any crossing, and a network that fails. */
import { expect, test } from "vitest";
import { simulateTree } from "../simulation/trees/run.ts";
import type { Defect } from "../simulation/trees/world.ts";

const SEEDS = 25;

test("DELEGATE-3 DELEGATE-7 DELEGATE-8 LEDGER-4 H4 A61 A72 trees of calls keep their properties under seeded faults", async () => {
  const failing: { seed: number; violations: string[] }[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const violations = await simulateTree(seed);
    if (violations.length > 0) failing.push({ seed, violations });
  }
  expect(failing).toEqual([]);
}, 120_000);

/** The defects, each with a seed shortly before the first seed that finds it. */
const DEFECTS: [defect: Defect, from: number][] = [
  ["cancellations lost", 60],
  ["results counted twice", 1],
  ["budgets not inherited", 20],
  ["answers forged", 1],
];

test.each(DEFECTS)(
  "the properties of trees find a planted defect: %s",
  async (defect, from) => {
    for (let seed = from; seed <= 400; seed++) if ((await simulateTree(seed, defect)).length > 0) return;
    expect.unreachable("no seed found it");
  },
  120_000,
);
