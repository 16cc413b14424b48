/** The heartbeat of running work, as a function of its age. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  MAX_HEARTBEAT_MS,
  MIN_HEARTBEAT_MS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { heartbeatIn } from "../../src/agents/conversation/core/effects.ts";

const age = fc.integer({ min: -3_600_000, max: 24 * 3_600_000 });

/** The ages at which work of this length has heartbeats. */
function heartbeats(length: number): number[] {
  const ages: number[] = [];
  for (let at = heartbeatIn(0); at < length; at += heartbeatIn(at)) ages.push(at);
  return ages;
}

describe("BEAT-1 the heartbeat", () => {
  test("is early for young work, later for old work, and never later than the longest wait", () => {
    fc.assert(
      fc.property(age, age, (one, other) => {
        const [younger, older] = one < other ? [one, other] : [other, one];
        expect(heartbeatIn(younger)).toBeLessThanOrEqual(heartbeatIn(older));
        expect(heartbeatIn(younger)).toBeGreaterThanOrEqual(MIN_HEARTBEAT_MS);
        expect(heartbeatIn(older)).toBeLessThanOrEqual(MAX_HEARTBEAT_MS);
      }),
    );
    expect([0, 1_000, 3_000, 60_000].map(heartbeatIn)).toEqual([1_500, 1_500, 3_000, 10_000]);
  });

  test("after a crash, delays work at most by its age, or by the shortest wait", () => {
    fc.assert(
      fc.property(fc.nat({ max: 600_000 }), (crashedAt) => {
        const next = heartbeats(crashedAt + MAX_HEARTBEAT_MS + 1).find((at) => at >= crashedAt) ?? Number.NaN;
        expect(next - crashedAt).toBeLessThanOrEqual(Math.max(crashedAt, MIN_HEARTBEAT_MS));
      }),
    );
  });

  test("is rare: absent for short work, then one for each doubling of its age, then one in ten seconds", () => {
    expect(heartbeats(MIN_HEARTBEAT_MS)).toEqual([]);
    expect(heartbeats(60_000)).toEqual([1_500, 3_000, 6_000, 12_000, 22_000, 32_000, 42_000, 52_000]);
    fc.assert(
      fc.property(fc.nat({ max: 3_600_000 }), (length) => {
        const doublings = Math.max(0, Math.log2(length / MIN_HEARTBEAT_MS));
        const most =
          Math.min(doublings, Math.log2(MAX_HEARTBEAT_MS / MIN_HEARTBEAT_MS)) + length / MAX_HEARTBEAT_MS;
        expect(heartbeats(length).length).toBeLessThanOrEqual(most + 1);
      }),
    );
  });
});
