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
  test("is asked once a second, however many clients try again, until it agrees", async () => {
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
