/** Token counts of the Gemini API. */
import type { JsonObject } from "../../shared/json.ts";
import type { TokenUsage } from "../types.ts";

/**
 * The counts in our words; `undefined` if there are none. The API counts what its tools brought in beside the other
 * input, and thoughts beside the other output. Its finer counts are kept as they are.
 */
export function readUsage(counts: JsonObject): TokenUsage | undefined {
  const input = sum(counts.promptTokenCount, counts.toolUsePromptTokenCount);
  const output = sum(counts.candidatesTokenCount, counts.thoughtsTokenCount);
  const finer = Object.entries(counts).filter(([, value]) => typeof value === "object" && value !== null);
  const usage: TokenUsage = {
    ...(input === undefined ? {} : { inputTokens: input }),
    ...given("cachedInputTokens", counts.cachedContentTokenCount),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...given("reasoningTokens", counts.thoughtsTokenCount),
    ...given("totalTokens", counts.totalTokenCount),
    ...(finer.length === 0 ? {} : { breakdown: Object.fromEntries(finer) }),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

function given(key: "cachedInputTokens" | "reasoningTokens" | "totalTokens", value: unknown): TokenUsage {
  return isCount(value) ? { [key]: value } : {};
}

function sum(...values: readonly unknown[]): number | undefined {
  const counts = values.filter(isCount);
  return counts.length === 0 ? undefined : counts.reduce((whole, count) => whole + count, 0);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
