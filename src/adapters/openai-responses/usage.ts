/** Token counts of the Responses API. Pure. */
import { isJsonObject, type Json } from "../../shared/json.ts";
import { count } from "../chat-chunk.ts";
import type { TokenUsage } from "../types.ts";

/** The provider's finer counts are kept as they are. */
export function readResponsesUsage(value: Json | undefined): TokenUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const { input_tokens_details: input, output_tokens_details: output } = value;
  const breakdown = Object.entries(value).filter(([, detail]) => isJsonObject(detail));
  const ofInput = isJsonObject(input) ? input : {};
  const usage: TokenUsage = {
    ...count("inputTokens", value.input_tokens),
    ...count("cachedInputTokens", ofInput.cached_tokens),
    ...count("cacheWriteTokens", ofInput.cache_write_tokens),
    ...count("outputTokens", value.output_tokens),
    ...count("reasoningTokens", isJsonObject(output) ? output.reasoning_tokens : undefined),
    ...count("totalTokens", value.total_tokens),
    ...(breakdown.length === 0 ? {} : { breakdown: Object.fromEntries(breakdown) }),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}
