/** Turns of tenants in one isolate, on a virtual clock. */
import { expect, test } from "vitest";
import { DEAD_MS, PACE_MS, TenantTurns } from "../../src/agents/base/runtime/tenant-turns.ts";
import { Random } from "../../src/testing/random.ts";
import { MortalClock, WorldClock } from "../simulation/clocks.ts";

const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Runs all timers. */
async function play(clock: WorldClock): Promise<void> {
  await breathe();
  while (await clock.runNext()) await breathe();
}

test("I2 TAKETURNS-1 pieces of one tenant begin in order and one at a time, and pieces of other tenants do not wait for them", async () => {
  const clock = new WorldClock();
  const turns = new TenantTurns();
  const begun: [tenant: string, n: number, at: number][] = [];
  const take = (tenant: string, n: number) =>
    void turns.take(tenant, clock).then(() => begun.push([tenant, n, clock.elapsed]));
  for (let n = 0; n < 20; n++) take("busy", n);
  take("other", 0);
  await play(clock);
  const busy = begun.filter(([tenant]) => tenant === "busy");
  expect(busy.map(([, n]) => n)).toEqual(busy.map((_, n) => n));
  for (const [n, [, , at]] of busy.entries())
    expect(at - (busy[n - 1]?.[2] ?? -PACE_MS)).toBeGreaterThanOrEqual(PACE_MS);
  expect(begun.find(([tenant]) => tenant === "other")).toEqual(["other", 0, 0]);
});

test("TAKETURNS-2 while no timer fires, one piece of a tenant begins", async () => {
  const clock = new WorldClock();
  const turns = new TenantTurns();
  let begun = 0;
  for (let n = 0; n < 5; n++) void turns.take("busy", clock).then(() => begun++);
  await breathe();
  expect(begun).toBe(1);
});

test("TAKETURNS-3 actors that die in the line or right after their turn hold up the others for a bounded time", async () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = new Random(seed);
    const clock = new WorldClock();
    const turns = new TenantTurns();
    let [begun, living] = [0, 0];
    for (let n = 0; n < 12; n++) {
      const own = new MortalClock(clock);
      const dies = random.chance(0.4);
      if (dies) clock.timer(random.int(0, 3 * PACE_MS), () => own.die());
      else living += 1;
      void turns.take("busy", own).then(() => {
        if (!dies) begun += 1;
      });
    }
    await play(clock);
    expect(begun, `seed ${seed}`).toBe(living);
    expect(clock.elapsed).toBeLessThan(14 * (DEAD_MS + 13 * PACE_MS));
  }
});
