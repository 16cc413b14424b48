/** Token counts of the Messages API. Pure. */

import type { TokenUsage } from "../../../model/usage.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { finerCounts, sum, tokenUsage } from "../common/usage.ts";

/** The API counts what came from the cache and what went into it beside the other input. */
export function anthropicUsage(counts: JsonObject): TokenUsage | undefined {
  const { input_tokens: fresh, output_tokens: output, output_tokens_details: details } = counts;
  const { cache_read_input_tokens: cached, cache_creation_input_tokens: written } = counts;
  const input = sum(fresh) === undefined ? undefined : sum(fresh, cached, written);
  return tokenUsage(
    {
      inputTokens: input,
      cachedInputTokens: cached,
      cacheWriteTokens: written,
      outputTokens: output,
      reasoningTokens: isJsonObject(details) ? details.thinking_tokens : undefined,
      totalTokens: input === undefined || sum(output) === undefined ? undefined : sum(input, output),
    },
    finerCounts(counts),
  );
}
