/** What a call cost, by the prices of its model profile. Pure. */
import type { ModelProfile, TokenUsage } from "../adapters/types.ts";

export type Prices = Pick<
  ModelProfile,
  "costPer1kInput" | "costPer1kOutput" | "costPer1kCachedInput" | "costPer1kCacheWrite"
>;

/**
 * US dollars; `undefined` where the profile has no price for something that was used, or the provider counted nothing.
 * Input from the cache, and into it, has the price of other input where it has none of its own.
 */
export function costOf(prices: Prices, usage: TokenUsage | undefined): number | undefined {
  const { costPer1kInput: input, costPer1kOutput: output } = prices;
  const {
    inputTokens,
    outputTokens,
    cachedInputTokens: cached = 0,
    cacheWriteTokens: written = 0,
  } = usage ?? {};
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const plain = Math.max(0, (inputTokens ?? 0) - cached - written);
  const parts: [tokens: number, price: number | undefined][] = [
    [plain, input],
    [cached, prices.costPer1kCachedInput ?? input],
    [written, prices.costPer1kCacheWrite ?? input],
    [outputTokens ?? 0, output],
  ];
  let cost = 0;
  for (const [tokens, price] of parts) {
    if (tokens === 0) continue;
    if (price === undefined) return undefined;
    cost += (tokens * price) / 1_000;
  }
  return cost;
}
