/** Workflow tools in Node: conversations and runs with their real mailboxes, seeded faults, and a virtual clock that passes days. */
import { expect, test } from "vitest";
import { simulateFlows } from "../simulation/flows/run.ts";
import type { Defect } from "../simulation/flows/world.ts";

/** The last seed stops a request of a model, whose tokens are estimated. */
const SEEDS = [...Array.from({ length: 15 }, (_, index) => index + 1), 8_600_356];

test("TREESHARE-1 SUBRUN-2 FLOWCALL-1 FLOWCALL-3 FLOWCALL-5 LEDGER-7 HELD-1 HELD-2 HOLD-1 I3 turns that run workflows keep their properties under seeded faults", async () => {
  const failing: { seed: number; violations: string[] }[] = [];
  for (const seed of SEEDS) {
    const violations = await simulateFlows(seed);
    if (violations.length > 0) failing.push({ seed, violations });
  }
  expect(failing).toEqual([]);
}, 120_000);

/** The defects, each with a seed shortly before the first seed that finds it. */
const DEFECTS: [defect: Defect, from: number][] = [
  ["cancellations lost", 110],
  ["ends counted twice", 1],
  ["waits not reported", 260],
  ["starts decided early", 1],
];

test.each(DEFECTS)(
  "the properties of workflow tools find a planted defect: %s",
  async (defect, from) => {
    for (let seed = from; seed <= 400; seed++) if ((await simulateFlows(seed, defect)).length > 0) return;
    expect.unreachable("no seed found it");
  },
  120_000,
);
