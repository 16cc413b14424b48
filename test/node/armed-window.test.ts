/** The wake-up of active turns over a platform that refuses it for a while. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ArmedWindow } from "../../src/agents/conversation/effects/armed-window.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

function refusing(refuse: () => Promise<void>) {
  const clock = new VirtualClock();
  const platform = { isDown: true, asked: 0 };
  const open = () => {
    platform.asked += 1;
    return platform.isDown ? refuse() : Promise.resolve();
  };
  return { clock, platform, window: new ArmedWindow({ window: { open }, clock }, () => 10_000) };
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
    const { clock, platform, window } = refusing(refuse);
    for (let client = 0; client < 100; client++) await expect(window.whenArmed()).rejects.toThrow();
    expect(platform.asked).toBe(100);
    expect(clock.pending).toBe(1);
    for (let second = 1; second <= 3; second++) {
      await clock.advance(1_000);
      expect([platform.asked, clock.pending]).toEqual([100 + second, 1]);
    }
    platform.isDown = false;
    await clock.advance(1_000);
    expect([platform.asked, clock.pending]).toEqual([104, 0]);
    await window.whenArmed();
    expect(platform.asked).toBe(104);
  });
});
