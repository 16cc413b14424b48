/** Token counts of the Messages API. */
import type { JsonObject } from "../../shared/json.ts";
import type { TokenUsage } from "../types.ts";

/**
 * The counts in our words; `undefined` if there are none. The API counts what came from the cache and what went into it
 * beside the other input. Its finer counts are kept as they are.
 */
export function readUsage(counts: JsonObject): TokenUsage | undefined {
  const fresh = count(counts.input_tokens);
  const cached = count(counts.cache_read_input_tokens);
  const written = count(counts.cache_creation_input_tokens);
  const output = count(counts.output_tokens);
  const input = fresh === undefined ? undefined : fresh + (cached ?? 0) + (written ?? 0);
  const details = counts.output_tokens_details;
  const reasoning =
    isDetailed(details) && "thinking_tokens" in details ? count(details.thinking_tokens) : undefined;
  const finer = Object.entries(counts).filter(([, value]) => isDetailed(value));
  const usage: TokenUsage = {
    ...(input === undefined ? {} : { inputTokens: input }),
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    ...(input === undefined || output === undefined ? {} : { totalTokens: input + output }),
    ...(finer.length === 0 ? {} : { breakdown: Object.fromEntries(finer) }),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function isDetailed(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
