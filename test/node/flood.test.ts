/** How much a connection may send, as numbers. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Allowance, FLOOD, spend } from "../../src/agents/base/sockets/admission.ts";

const steps = fc.array(
  fc.record({
    wait: fc.oneof(fc.constant(0), fc.integer({ min: -5_000, max: 20_000 })),
    length: fc.oneof(fc.nat(1000), fc.nat(40_000_000)),
  }),
  { maxLength: 300 },
);

test("FLOOD-1 for any arrivals, at most the burst and the refill get through", () => {
  fc.assert(
    fc.property(steps, (script) => {
      let now = 1_000_000;
      let flowed = 0;
      let allowance: Allowance | undefined;
      const through = { frames: 0, length: 0 };
      for (const { wait, length } of script) {
        now += wait;
        flowed += Math.max(0, wait);
        const left = spend(allowance, length, now);
        if (left === null) continue;
        allowance = left;
        through.frames += 1;
        through.length += Math.min(length, FLOOD.length.burst);
        for (const kind of ["frames", "length"] as const) {
          const most = FLOOD[kind].burst + (flowed / 60_000) * FLOOD[kind].perMinute;
          expect(through[kind]).toBeLessThanOrEqual(most + 1e-6 * most);
        }
      }
    }),
  );
});

test("FLOOD-1 a human is never stopped, a full burst gets through, and ten idle seconds make it full again", () => {
  let allowance: Allowance | undefined;
  for (let n = 0; n < 1000; n++) {
    allowance = spend(allowance, 5_000, n * 200) ?? undefined;
    expect(allowance).toBeDefined();
  }
  const burst = (at: number) => {
    for (let n = 0; n < FLOOD.frames.burst; n++) {
      const left = spend(allowance, 0, at);
      expect(left).not.toBeNull();
      allowance = left ?? undefined;
    }
    expect(spend(allowance, 0, at)).toBeNull();
  };
  burst(400_000);
  burst(410_000);
});
