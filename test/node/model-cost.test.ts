/** The costs of model calls. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { costOf, type Prices } from "../../src/model/cost.ts";
import type { TokenUsage } from "../../src/model/usage.ts";

const price = fc.double({ min: 0, max: 1, noNaN: true });
const prices: fc.Arbitrary<Prices> = fc.record(
  {
    costPer1kInput: price,
    costPer1kOutput: price,
    costPer1kCachedInput: price,
    costPer1kCacheWrite: price,
  },
  { requiredKeys: ["costPer1kInput", "costPer1kOutput"] },
);
const count = fc.nat(1_000_000);
const usage: fc.Arbitrary<Required<Omit<TokenUsage, "breakdown" | "reasoningTokens" | "totalTokens">>> = fc
  .tuple(count, count, count, count)
  .map(([plain, read, written, output]) => ({
    inputTokens: plain + read + written,
    cachedInputTokens: read,
    cacheWriteTokens: written,
    outputTokens: output,
  }));

describe("cost", () => {
  test("each kind of token by its own price", () => {
    const tokens = {
      inputTokens: 10_000,
      cachedInputTokens: 4_000,
      cacheWriteTokens: 1_000,
      outputTokens: 500,
    };
    expect(
      costOf(tokens, {
        costPer1kInput: 0.01,
        costPer1kOutput: 0.1,
        costPer1kCachedInput: 0.001,
        costPer1kCacheWrite: 0.02,
      }),
    ).toBeCloseTo(0.05 + 0.004 + 0.02 + 0.05, 12);
    expect(costOf(tokens, { costPer1kInput: 0.01, costPer1kOutput: 0.1 })).toBeCloseTo(0.1 + 0.05, 12);
  });

  test("COST-3 an unknown cost is undefined", () => {
    const both = { costPer1kInput: 1, costPer1kOutput: 1 };
    expect(costOf({}, both)).toBeUndefined();
    expect(costOf({ totalTokens: 5 }, both)).toBeUndefined();
    expect(costOf({ inputTokens: 1, outputTokens: 1 }, {})).toBeUndefined();
    expect(costOf({ inputTokens: 1, outputTokens: 1 }, { costPer1kInput: 1 })).toBeUndefined();
    expect(costOf({ inputTokens: 1_000 }, { costPer1kInput: 1 })).toBe(1);
  });

  test("COST-1 never negative, and zero for zero tokens", () => {
    expect(costOf({ inputTokens: 0, outputTokens: 0 }, { costPer1kInput: 1 })).toBe(0);
    const odd = fc.record({ inputTokens: count, cachedInputTokens: count, outputTokens: count });
    fc.assert(
      fc.property(fc.oneof(usage, odd), prices, (used, per) => {
        expect(costOf(used, per)).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 100 },
    );
  });

  test("COST-2 costs add up", () => {
    fc.assert(
      fc.property(usage, usage, prices, (one, other, per) => {
        const sum = {
          inputTokens: one.inputTokens + other.inputTokens,
          cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
          cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
          outputTokens: one.outputTokens + other.outputTokens,
        };
        expect(costOf(sum, per)).toBeCloseTo((costOf(one, per) ?? -1) + (costOf(other, per) ?? -1), 6);
      }),
      { numRuns: 100 },
    );
  });
});
