/** Random lives of an agent's memory under crashes and failing stores, a few of them. `MEMORY_SEEDS` sets how many, for a longer hunt. */
import { expect, test } from "vitest";
import { simulateMemory } from "../simulation/memory.ts";

const SEEDS = Number(process.env.MEMORY_SEEDS ?? 40);

test("A54 H1 G8 MEMCOPY-1 MEMCOPY-3 MEMCOPY-4 MEMINDEX-1 MEMVECTORS-2 MEMVECTORS-7 random lives keep all acknowledged memories, and no erased text in any store", async () => {
  const failing: object[] = [];
  const seen = { lives: 0, erased: 0, kept: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { violations, lives, erased, kept } = await simulateMemory(seed);
    if (violations.length > 0) failing.push({ seed, violations: violations.slice(0, 3) });
    seen.lives += lives - 1;
    seen.erased += erased;
    seen.kept += kept;
  }
  if (process.env.MEMORY_SEEDS !== undefined) console.log(seen);
  expect(failing).toEqual([]);
  expect(seen.lives).toBeGreaterThan(SEEDS);
  expect(seen.erased).toBeGreaterThan(SEEDS);
  expect(seen.kept).toBeGreaterThan(SEEDS);
}, 600_000);
