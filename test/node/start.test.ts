/** Decisions of `npm start`. `test/e2e/start.test.ts` tests their execution. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mayRestart } from "../../scripts/restarts.ts";

describe("mayRestart", () => {
  it("START-3 allows three ends within five minutes, and a fourth only when the first is longer ago", () => {
    const ends = [0, 10_000, 20_000, 299_999];
    expect(mayRestart([0], 0)).toBe(true);
    expect(mayRestart(ends.slice(0, 3), 20_000)).toBe(true);
    expect(mayRestart(ends, 299_999)).toBe(false);
    expect(mayRestart(ends, 300_000)).toBe(true);
  });

  it("START-3 never gives up on ends that are far apart, however many", () => {
    const pauses = fc.array(fc.integer({ min: 100_000, max: 1_000_000 }), { maxLength: 50 });
    fc.assert(
      fc.property(pauses, (pauses) => {
        const ends = pauses.map((_, index) =>
          pauses.slice(0, index + 1).reduce((sum, pause) => sum + pause, 0),
        );
        return ends.every((end, index) => mayRestart(ends.slice(0, index + 1), end));
      }),
    );
  });
});
