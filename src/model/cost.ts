/**
 * The cost of a call, by the prices of its profile. Pure.
 *
 * COST-1  A cost is never negative. No tokens cost 0.
 * COST-2  Costs are additive: the cost of summed usages is the sum of their costs.
 * COST-3  A cost is `undefined` if it cannot be known: without usage, or without a price for a counted token.
 */
import type { ModelProfile } from "./profile.ts";
import type { TokenUsage } from "./usage.ts";

/** US dollars per 1 000 tokens. */
export type Prices = Pick<
  ModelProfile,
  "costPer1kInput" | "costPer1kOutput" | "costPer1kCachedInput" | "costPer1kCacheWrite"
>;

/**
 * Returns the cost of a call in US dollars. Cached input without a price of its own has the price of other input.
 *
 * @example costOf({ inputTokens: 1_000, outputTokens: 200 }, { costPer1kInput: 0.4, costPer1kOutput: 1.6 })
 */
export function costOf(usage: TokenUsage | undefined, prices: Prices | undefined): number | undefined {
  if (usage === undefined || prices === undefined) return undefined;
  const { inputTokens, outputTokens = 0 } = usage;
  if (inputTokens === undefined && usage.outputTokens === undefined) return undefined;
  const { costPer1kInput: perInput, costPer1kOutput: perOutput } = prices;
  if (perInput === undefined && perOutput === undefined) return undefined;
  const read = usage.cachedInputTokens ?? 0;
  const written = usage.cacheWriteTokens ?? 0;
  const parts = [
    [Math.max(0, (inputTokens ?? 0) - read - written), perInput],
    [read, prices.costPer1kCachedInput ?? perInput],
    [written, prices.costPer1kCacheWrite ?? perInput],
    [outputTokens, perOutput],
  ] as const;
  let cost = 0;
  for (const [tokens, per1k] of parts) {
    if (tokens === 0) continue;
    if (per1k === undefined) return undefined;
    cost += (tokens * per1k) / 1000;
  }
  return cost;
}

/** Returns the cost in US dollars, rounded to a billionth. */
export function dollarsOf(
  usage: TokenUsage | undefined,
  profile: ModelProfile | undefined,
): number | undefined {
  const nano = nanoDollarsOf(usage, profile);
  return nano === undefined ? undefined : toDollars(nano);
}

export function toDollars(nanoDollars: number): number {
  return nanoDollars / NANO;
}

const NANO = 1_000_000_000;

/** Returns the cost in billionths of a US dollar: a whole number, so that sums are exact. */
export function nanoDollarsOf(
  usage: TokenUsage | undefined,
  profile: ModelProfile | undefined,
): number | undefined {
  const cost = costOf(usage, profile);
  return cost === undefined ? undefined : Math.round(cost * NANO);
}
