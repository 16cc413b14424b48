/** Token counts of the AI SDK. Pure. */
import { isJsonObject, type Json } from "../../shared/json.ts";
import { count } from "../chat-chunk.ts";
import type { TokenUsage } from "../types.ts";

/** The provider's own counts are the breakdown. */
export function readAiSdkUsage(value: Json | undefined): TokenUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const input = isJsonObject(value.inputTokens) ? value.inputTokens : {};
  const output = isJsonObject(value.outputTokens) ? value.outputTokens : {};
  const total =
    typeof input.total === "number" && typeof output.total === "number"
      ? input.total + output.total
      : undefined;
  const usage: TokenUsage = {
    ...count("inputTokens", input.total),
    ...count("cachedInputTokens", input.cacheRead),
    ...count("cacheWriteTokens", input.cacheWrite),
    ...count("outputTokens", output.total),
    ...count("reasoningTokens", output.reasoning),
    ...count("totalTokens", total),
    ...(isJsonObject(value.raw) ? { breakdown: value.raw } : {}),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}
