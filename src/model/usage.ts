/** The token usage of model calls, as counted by providers. */
import type { Json } from "../shared/json.ts";

/** The tokens of one call. */
export interface TokenUsage {
  /** The whole prompt, including cached input. */
  inputTokens?: number;
  /** The part of the input that was read from a cache. */
  cachedInputTokens?: number;
  /** The part of the input that was written to a cache. */
  cacheWriteTokens?: number;
  /** The whole output, including reasoning. */
  outputTokens?: number;
  /** The part of the output that was reasoning. */
  reasoningTokens?: number;
  totalTokens?: number;
  breakdown?: Record<string, Json>;
}

export interface UsageTotals {
  /** Number of finished calls. All attempts with one model count as one call. */
  readonly calls: number;
  readonly inputTokens: number;
  /** The part of the input that was read from a cache. */
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  /** Billionths of a US dollar: whole numbers, so that sums are exact. */
  readonly nanoDollars: number;
}

export const NO_USAGE: UsageTotals = {
  calls: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  nanoDollars: 0,
};

const COUNTS = [
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "outputTokens",
  "reasoningTokens",
  "totalTokens",
] as const satisfies (keyof TokenUsage)[];

/** Adds up two usages, count by count. Omits the provider's breakdown. */
export function addUsage(one: TokenUsage | undefined, other: TokenUsage | undefined): TokenUsage | undefined {
  if (one === undefined && other === undefined) return undefined;
  const sum: TokenUsage = {};
  for (const count of COUNTS) {
    const [a, b] = [one?.[count], other?.[count]];
    if (a !== undefined || b !== undefined) sum[count] = (a ?? 0) + (b ?? 0);
  }
  return sum;
}
