/** Token counts of the AI SDK. Pure. */

import type { TokenUsage } from "../../../model/usage.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { sum, tokenUsage } from "../common/usage.ts";

/** The provider's own counts are the finer ones. */
export function aiSdkUsage(value: Json | undefined): TokenUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const input = isJsonObject(value.inputTokens) ? value.inputTokens : {};
  const output = isJsonObject(value.outputTokens) ? value.outputTokens : {};
  const isWhole = sum(input.total) !== undefined && sum(output.total) !== undefined;
  return tokenUsage(
    {
      inputTokens: input.total,
      cachedInputTokens: input.cacheRead,
      cacheWriteTokens: input.cacheWrite,
      outputTokens: output.total,
      reasoningTokens: output.reasoning,
      totalTokens: isWhole ? sum(input.total, output.total) : undefined,
    },
    isJsonObject(value.raw) ? value.raw : undefined,
  );
}
