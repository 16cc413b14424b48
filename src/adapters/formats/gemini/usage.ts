/** Token counts of the Gemini API. Pure. */

import type { TokenUsage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { finerCounts, sum, tokenUsage } from "../common/usage.ts";

/** The API counts what its tools brought in beside the other input, and thoughts beside the other output. */
export function geminiUsage(counts: JsonObject): TokenUsage | undefined {
  return tokenUsage(
    {
      inputTokens: sum(counts.promptTokenCount, counts.toolUsePromptTokenCount),
      cachedInputTokens: counts.cachedContentTokenCount,
      outputTokens: sum(counts.candidatesTokenCount, counts.thoughtsTokenCount),
      reasoningTokens: counts.thoughtsTokenCount,
      totalTokens: counts.totalTokenCount,
    },
    finerCounts(counts),
  );
}
