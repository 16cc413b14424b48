/**
 * What a call cost, by its profile's prices. Pure.
 *
 * COST-1  A cost is never negative, and no tokens cost 0.
 * COST-2  Costs add up: usages that are summed cost what they cost one by one.
 * COST-3  A cost that cannot be known is `undefined`: nothing was counted, or something that was counted has no price.
 */

import type { ModelProfile } from "./profile.ts";
import type { TokenUsage } from "./usage.ts";

/** US dollars per 1 000 tokens. */
export type Prices = Pick<
  ModelProfile,
  "costPer1kInput" | "costPer1kOutput" | "costPer1kCachedInput" | "costPer1kCacheWrite"
>;

/** US dollars. Input that was read from a cache or written to one costs what other input does, unless it has a price. */
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

/** US dollars, rounded to a billionth; `undefined` where there is no price or nothing was counted. */
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

/** Billionths of a US dollar: whole numbers, so that sums are exact. */
export function nanoDollarsOf(
  usage: TokenUsage | undefined,
  profile: ModelProfile | undefined,
): number | undefined {
  const cost = costOf(usage, profile);
  return cost === undefined ? undefined : Math.round(cost * NANO);
}
