/** Token counts under the names that all providers share. Pure. */
import type { ModelDelta } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { membersOf } from "./json.ts";

/** Returns the valid counts, with the provider's detailed counts (`finer`) as their breakdown. `undefined` without valid counts. */
export function tokenUsage(
  counts: Partial<Record<Exclude<keyof TokenUsage, "breakdown">, unknown>>,
  finer: JsonObject = {},
): TokenUsage | undefined {
  const valid = Object.entries(counts).filter(([, value]) => isCount(value));
  const hasFiner = Object.keys(finer).length > 0;
  if (valid.length === 0 && !hasFiner) return undefined;
  return { ...Object.fromEntries(valid), ...(hasFiner ? { breakdown: finer } : {}) };
}

/** Returns the members that are objects or lists: they hold counts of their own. */
export function finerCounts(counts: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(counts).filter(([, value]) => typeof value === "object" && value !== null),
  );
}

/** Adds up the valid counts. `undefined` without valid counts. */
export function sum(...values: readonly unknown[]): number | undefined {
  const counts = values.filter(isCount);
  return counts.length === 0 ? undefined : counts.reduce((total, count) => total + count, 0);
}

/** Adds input and output; `undefined` if either is not a valid count. */
export function total(input: unknown, output: unknown): number | undefined {
  return isCount(input) && isCount(output) ? input + output : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** Counts that one reply reports several times. Later counts replace earlier counts, key by key. */
export class RunningCounts {
  readonly #toUsage: (counts: JsonObject) => TokenUsage | undefined;
  #counts: JsonObject = {};

  constructor(toUsage: (counts: JsonObject) => TokenUsage | undefined) {
    this.#toUsage = toUsage;
  }

  add(given: JsonObject | null | undefined): ModelDelta[] {
    if (!given) return [];
    const known = Object.entries(given).filter((entry): entry is [string, Json] => entry[1] !== null);
    this.#counts = { ...this.#counts, ...Object.fromEntries(known) };
    return usageDeltas(this.#toUsage(this.#counts));
  }
}

export function usageDeltas(usage: TokenUsage | undefined): ModelDelta[] {
  return usage === undefined ? [] : [{ type: "usage", usage }];
}

/** Reads the counts of OpenAI's protocols: Chat Completions call input and output "prompt" and "completion". */
export function openaiUsage(value: unknown): TokenUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const input = membersOf(value.prompt_tokens_details ?? value.input_tokens_details);
  const output = membersOf(value.completion_tokens_details ?? value.output_tokens_details);
  return tokenUsage(
    {
      inputTokens: value.prompt_tokens ?? value.input_tokens,
      cachedInputTokens: input.cached_tokens ?? value.prompt_cache_hit_tokens,
      cacheWriteTokens: input.cache_write_tokens,
      outputTokens: value.completion_tokens ?? value.output_tokens,
      reasoningTokens: output.reasoning_tokens,
      totalTokens: value.total_tokens,
    },
    finerCounts(value),
  );
}
