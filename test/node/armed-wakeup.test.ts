/** An armed wake-up over a platform that refuses it for a while. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ArmedWakeup } from "../../src/agents/base/runtime/armed-wakeup.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

function refusing(refuse: () => Promise<void>) {
  const clock = new VirtualClock();
  const platform = { isDown: true, asked: 0 };
  const armWakeup = () => {
    platform.asked += 1;
    return platform.isDown ? refuse() : Promise.resolve();
  };
  return { clock, platform, wakeup: new ArmedWakeup({ armWakeup, clock }, () => 10_000) };
}

describe.each([
  ["later", () => Promise.reject(new Error("no alarm"))],
  [
    "at once",
    () => {
      throw new Error("disk full");
    },
  ],
])("RUN-6 a platform that refuses %s", (_, refuse: () => Promise<void>) => {
  test("is requested once a second, however many clients retry, until it agrees", async () => {
    const { clock, platform, wakeup } = refusing(refuse);
    for (let client = 0; client < 100; client++) await expect(wakeup.whenArmed()).rejects.toThrow();
    expect(platform.asked).toBe(100);
    expect(clock.pending).toBe(1);
    for (let second = 1; second <= 3; second++) {
      await clock.advance(1_000);
      expect([platform.asked, clock.pending]).toEqual([100 + second, 1]);
    }
    platform.isDown = false;
    await clock.advance(1_000);
    expect([platform.asked, clock.pending]).toEqual([104, 0]);
    await wakeup.whenArmed();
    expect(platform.asked).toBe(104);
  });
});

describe("RUN-8 a wake-up that was armed while the actor started", () => {
  const started = (due: number | null) => {
    const clock = new VirtualClock();
    const asked: number[] = [];
    const armWakeup = async (milliseconds: number) => void asked.push(milliseconds);
    const wakeup = new ArmedWakeup({ armWakeup, clock }, () => due);
    wakeup.adopt(wakeup.write(10_000));
    wakeup.doubt();
    return { clock, asked, wakeup };
  };

  test("is armed again for the first request", async () => {
    const { clock, asked, wakeup } = started(9_000);
    expect(wakeup.isArmed).toBe(false);
    await wakeup.whenArmed();
    expect(asked).toEqual([10_000, 9_000]);
    await clock.advance(5_000);
    expect(asked).toEqual([10_000, 9_000]);
  });

  test("is armed again after a second without a request, while there is work", async () => {
    const { clock, asked } = started(9_000);
    await clock.advance(1_000);
    expect([asked, clock.pending]).toEqual([[10_000, 9_000], 0]);
    const idle = started(null);
    await idle.clock.advance(1_000);
    expect([idle.asked, idle.clock.pending]).toEqual([[10_000], 0]);
  });
});

describe("RUN-6 RUN-8 storage that cannot be read when a wake-up is armed again", () => {
  test.each([
    ["after a failure", (wakeup: ArmedWakeup) => wakeup.adopt(Promise.reject(new Error("no alarm")))],
    ["after a start", (wakeup: ArmedWakeup) => wakeup.doubt()],
  ])("is read again a second later: %s", async (_, begin) => {
    const clock = new VirtualClock();
    const asked: number[] = [];
    let isBroken = true;
    const wakeup = new ArmedWakeup({ armWakeup: async (due) => void asked.push(due), clock }, () => {
      if (isBroken) throw new Error("disk full");
      return 9_000;
    });
    begin(wakeup);
    await clock.advance(2_500);
    expect([asked, clock.pending]).toEqual([[], 1]);
    isBroken = false;
    await clock.advance(1_000);
    expect([asked, clock.pending]).toEqual([[9_000], 0]);
  });
});
