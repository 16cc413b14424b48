/** The token bucket's rules over random histories of takes and waits. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { completeLimits } from "../../src/http/base/http-limits.ts";
import {
  isFull,
  type RateLimit,
  RateLimiter,
  takeToken,
  tokenBucket,
} from "../../src/shared/token-bucket.ts";

const START = Date.UTC(2026, 0, 1);

const limits: fc.Arbitrary<RateLimit> = fc.record({
  perMinute: fc.oneof(fc.integer({ min: 1, max: 100_000 }), fc.double({ min: 0.5, max: 1000, noNaN: true })),
  burst: fc.integer({ min: 1, max: 1000 }),
});
const steps = fc.array(fc.record({ wait: fc.nat({ max: 20_000 }), cost: fc.integer({ min: 1, max: 50 }) }), {
  minLength: 1,
  maxLength: 100,
});

describe("a token bucket", () => {
  test("gives its burst at once, then tokens at its rate", () => {
    let bucket = tokenBucket({ perMinute: 60, burst: 3 });
    const take = (now: number) => {
      const taken = takeToken(bucket, 1, now);
      bucket = taken.bucket;
      return taken.allowed ? "given" : taken.retryAfter;
    };
    expect([0, 0, 0, 0].map((wait) => take(START + wait))).toEqual(["given", "given", "given", 1000]);
    expect([999, 1000, 1000].map((wait) => take(START + wait))).toEqual([1, "given", 1000]);
    expect([60_000, 60_000, 60_000, 60_000].map((wait) => take(START + wait))).toEqual([
      "given",
      "given",
      "given",
      1000,
    ]);
  });

  test("BUCKET-1 gives at most its burst and the tokens of its rate, in any span", () => {
    fc.assert(
      fc.property(limits, steps, (limit, steps) => {
        let bucket = tokenBucket(limit);
        let now = START;
        const given: { at: number; cost: number }[] = [];
        for (const { wait, cost } of steps) {
          now += wait;
          const taken = takeToken(bucket, cost, now);
          bucket = taken.bucket;
          if (taken.allowed) given.push({ at: now, cost: Math.min(cost, limit.burst) });
        }
        for (const [first, { at: from }] of given.entries()) {
          let sum = 0;
          for (const { at, cost } of given.slice(first)) {
            sum += cost;
            const most = limit.burst + ((at - from) * limit.perMinute) / 60_000;
            expect(sum).toBeLessThanOrEqual(most * (1 + 1e-6));
          }
        }
      }),
    );
  });

  test("BUCKET-1 gives all of its burst at once, whatever its rate", () => {
    fc.assert(
      fc.property(limits, (limit) => {
        let bucket = tokenBucket(limit);
        const allowed = Array.from({ length: limit.burst + 1 }, () => {
          const taken = takeToken(bucket, 1, START);
          bucket = taken.bucket;
          return taken.allowed;
        });
        expect(allowed.lastIndexOf(true)).toBe(limit.burst - 1);
      }),
    );
  });

  test("BUCKET-2 a refusal is free, and the returned wait is exact", () => {
    fc.assert(
      fc.property(limits, steps, fc.integer({ min: 1, max: 50 }), (limit, steps, cost) => {
        let bucket = tokenBucket(limit);
        let now = START;
        for (const step of steps) {
          now += step.wait;
          bucket = takeToken(bucket, step.cost, now).bucket;
        }
        const refused = takeToken(bucket, cost, now);
        if (refused.allowed) return;
        expect(Number.isInteger(refused.retryAfter)).toBe(true);
        const early = now + refused.retryAfter - 1;
        if (early >= now) expect(takeToken(refused.bucket, cost, early).allowed).toBe(false);
        expect(takeToken(refused.bucket, cost, now + refused.retryAfter).allowed).toBe(true);
        expect(takeToken(bucket, cost, now + refused.retryAfter).allowed).toBe(true);
      }),
    );
  });

  test("BUCKET-3 waits for at most one filling, also after the clock jumped back", () => {
    fc.assert(
      fc.property(limits, steps, fc.nat({ max: 1_000_000_000 }), (limit, steps, jump) => {
        let bucket = tokenBucket(limit);
        let now = START;
        for (const { wait, cost } of steps) {
          now += wait;
          bucket = takeToken(bucket, cost, now).bucket;
        }
        const filling = (limit.burst * 60_000) / limit.perMinute;
        const taken = takeToken(bucket, limit.burst, now - jump);
        expect(taken.allowed ? 0 : taken.retryAfter).toBeLessThanOrEqual(filling + 2);
      }),
    );
  });

  test("can be forgotten once it is full", () => {
    const taken = takeToken(tokenBucket({ perMinute: 60, burst: 3 }), 2, START);
    expect(isFull(taken.bucket, START + 1999)).toBe(false);
    expect(isFull(taken.bucket, START + 2000)).toBe(true);
    expect(isFull(tokenBucket({ perMinute: 60, burst: 3 }), START)).toBe(true);
  });
});

describe("a rate limiter", () => {
  test("LIMIT-1 counts each key separately and remembers a bounded number of keys", () => {
    const limiter = new RateLimiter({ perMinute: 1, burst: 1 }, 100);
    expect(limiter.take("noisy", START)).toBe(0);
    for (let n = 0; n < 10_000; n++) {
      expect(limiter.take(`key ${n}`, START)).toBe(0);
      expect(limiter.take("noisy", START)).toBeGreaterThan(0);
      expect(limiter.size).toBeLessThanOrEqual(100);
    }
  });

  test("LIMIT-1 forgets keys with buckets that are full again", () => {
    const limiter = new RateLimiter({ perMinute: 60, burst: 1 });
    for (let n = 0; n < 50; n++) limiter.take(`key ${n}`, START);
    expect(limiter.size).toBe(50);
    limiter.take("another", START + 1000);
    expect(limiter.size).toBe(1);
  });
});

test("G6 default limits equal the documented limits", () => {
  const documented = {
    requests: { perMinute: 1200, burst: 600 },
    turns: { perMinute: 600, burst: 200 },
    changes: { perMinute: 30, burst: 10 },
    agentTurns: 8,
    toolCalls: 4,
    clientToolMs: 600_000,
    calls: { depth: 4, open: 32, tree: 256 },
    runs: { active: 64, tokens: 100_000, total: 10_000 },
    approvalMs: 24 * 3_600_000,
    bodyBytes: 2 * 1024 * 1024,
    attachmentBytes: 8 * 1024 * 1024,
  };
  expect(completeLimits()).toEqual(documented);
  expect(completeLimits(documented)).toEqual(documented);
  expect(completeLimits({ calls: { tree: 8 } }).calls).toEqual({ depth: 4, open: 32, tree: 8 });
  expect(completeLimits({ turns: false })).toEqual({ ...documented, turns: false });
});
