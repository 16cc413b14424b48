/** Token counts of the Responses API. Pure. */

import type { TokenUsage } from "../../../model/usage.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { finerCounts, tokenUsage } from "../common/usage.ts";

export function responsesUsage(value: Json | undefined): TokenUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const { input_tokens_details: input, output_tokens_details: output } = value;
  const ofInput = isJsonObject(input) ? input : {};
  return tokenUsage(
    {
      inputTokens: value.input_tokens,
      cachedInputTokens: ofInput.cached_tokens,
      cacheWriteTokens: ofInput.cache_write_tokens,
      outputTokens: value.output_tokens,
      reasoningTokens: isJsonObject(output) ? output.reasoning_tokens : undefined,
      totalTokens: value.total_tokens,
    },
    finerCounts(value),
  );
}
