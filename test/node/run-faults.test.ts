/** Random runs of workflows in a world that fails, a few of them. `RUN_SEEDS` sets how many, for a longer hunt. */
import { expect, test } from "vitest";
import { simulateFaultyRun } from "../simulation/run-faults/run.ts";

const SEEDS = Number(process.env.RUN_SEEDS ?? 250);

/** Seeds that have found a defect: a stored commit that failed, a late answer, and stale memory. */
const FOUND = [3733, 8660, 9936, 311955];

test("A72 H1 F2 F6 F9 RUNGATE-1 RUNGATE-2 RUNTIME-1 SUBRUN-2 STOREDTIME-1 RUNSTORE-1 random runs keep their properties whatever fails", async () => {
  const failing: object[] = [];
  const seen = new Map<string, number>();
  const count = (name: string, by = 1) => seen.set(name, (seen.get(name) ?? 0) + by);
  for (const seed of [...FOUND, ...Array.from({ length: SEEDS }, (_, index) => index + 1)]) {
    const run = await simulateFaultyRun(seed);
    if (run === null) continue;
    if (run.violations.length > 0) failing.push({ seed, violations: run.violations.slice(0, 5) });
    count("runs");
    count("lives", run.lives);
    count("envelopes", run.envelopes);
    count(run.status);
    for (const [type, times] of run.entries) count(type, times);
  }
  if (process.env.RUN_SEEDS !== undefined) console.log(Object.fromEntries(seen));
  expect(failing.slice(0, 10)).toEqual([]);
  for (const name of ["completed", "failed", "timed_out", "cancelled"])
    expect(seen.get(name), name).toBeGreaterThan(0);
  for (const name of [
    "gate.answered",
    "gate.expired",
    "sync.timeout",
    "task.lost",
    "task.retried",
    "envelopes",
  ])
    expect(seen.get(name), name).toBeGreaterThan(0);
}, 600_000);
