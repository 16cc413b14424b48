/** Random runs of workflows under crashes, a few of them. `RUN_SEEDS` sets how many, for a longer hunt. */
import { expect, test } from "vitest";
import { simulateRun } from "../simulation/runs.ts";

const SEEDS = Number(process.env.RUN_SEEDS ?? 150);

/** A seed that has found a defect of the judge: tasks that are lost at the same time. */
const FOUND = [930198];

test("A72 H1 F2 F3 RUNSTORE-1 RUNSTORE-3 RUNSIGNAL-1 RUNRETRY-1 random runs under crashes and retries end as the reference interpreter says, and no `once` task runs twice", async () => {
  const failing: object[] = [];
  const seen = { lives: 0, unknown: 0, completed: 0, failed: 0, retries: 0, mended: 0 };
  for (const seed of [...FOUND, ...Array.from({ length: SEEDS }, (_, index) => index + 1)]) {
    const run = await simulateRun(seed);
    if (run === null) continue;
    if (run.violations.length > 0) failing.push({ seed, violations: run.violations.slice(0, 5) });
    seen.lives += run.lives - 1;
    seen.unknown += run.unknown;
    seen.retries += run.retries;
    if (run.retries > 0 && run.status === "completed") seen.mended += 1;
    if (run.status === "completed") seen.completed += 1;
    else seen.failed += 1;
  }
  if (process.env.RUN_SEEDS !== undefined) console.log(seen);
  expect(failing).toEqual([]);
  expect(seen.lives).toBeGreaterThan(SEEDS / 10);
  expect(seen.unknown).toBeGreaterThan(0);
  expect(seen.completed).toBeGreaterThan(SEEDS / 10);
  expect(seen.failed).toBeGreaterThan(0);
  expect(seen.retries).toBeGreaterThan(seen.mended);
  expect(seen.mended).toBeGreaterThan(0);
}, 600_000);
