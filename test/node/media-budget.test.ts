/** The memory for media in model calls. */
import { expect, test } from "vitest";
import { MediaBudget } from "../../src/agents/conversation/effects/media-budget.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const MIB = 1024 * 1024;

test("G25 MEDIABUDGET-1 calls with media wait for each other, and fail as retriable when they wait too long", async () => {
  const clock = new VirtualClock();
  const budget = new MediaBudget(12 * MIB);
  const { signal } = new AbortController();
  const release = await budget.reserve(16 * MIB, clock, signal);
  const second = budget.reserve(8 * MIB, clock, signal);
  await clock.advance(5_000);
  expect(budget.held).toBe(16 * MIB);
  release();
  release();
  await clock.advance(200);
  const releaseSecond = await second;
  expect(budget.held).toBe(8 * MIB);
  (await budget.reserve(4 * MIB, clock, signal))();
  const refused = expect(budget.reserve(5 * MIB, clock, signal)).rejects.toMatchObject({
    code: "UNAVAILABLE",
    retriable: true,
  });
  for (let step = 0; step < 400; step++) await clock.advance(100);
  await refused;
  releaseSecond();
  expect(budget.held).toBe(0);
});
