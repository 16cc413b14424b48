/** Tokens that model calls used, as their providers counted them. */
import type { Json } from "../shared/json.ts";

/** Tokens, as the provider counted them. */
export interface TokenUsage {
  /** All of the prompt, what came from a cache or went into one included. */
  inputTokens?: number;
  /** The part of the input that was read from the provider's cache. */
  cachedInputTokens?: number;
  /** The part of the input that was written to it. */
  cacheWriteTokens?: number;
  /** All that the model wrote, reasoning included. */
  outputTokens?: number;
  /** The part of the output that was reasoning. */
  reasoningTokens?: number;
  totalTokens?: number;
  breakdown?: Record<string, Json>;
}

/** What model calls used, added up. Tokens as their providers counted them. */
export interface UsageTotals {
  /** Calls that got an answer or a failure, one for all attempts with the same model. */
  readonly calls: number;
  readonly inputTokens: number;
  /** The part of the input that came from a cache. */
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

/** Both added up, count by count; a provider's own breakdown stays with its reply. */
export function addUsage(one: TokenUsage | undefined, other: TokenUsage | undefined): TokenUsage | undefined {
  if (one === undefined && other === undefined) return undefined;
  const sum: TokenUsage = {};
  for (const count of COUNTS) {
    const [a, b] = [one?.[count], other?.[count]];
    if (a !== undefined || b !== undefined) sum[count] = (a ?? 0) + (b ?? 0);
  }
  return sum;
}
