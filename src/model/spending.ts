/**
 * The amounts that model calls and tool calls use up. Pure.
 *
 * A reservation is the amount that a call may use up at most, as far as that is known before the call.
 */
import { isJsonObject, type Json, type JsonObject } from "../shared/json.ts";
import { nanoDollarsOf } from "./cost.ts";
import type { ModelProfile } from "./profile.ts";
import type { TokenUsage } from "./usage.ts";

/** The limited amounts of a budget. All are whole numbers, so sums are exact. */
export interface Amounts {
  readonly tokens: number;
  readonly nanoDollars: number;
  readonly toolCalls: number;
  readonly modelCalls: number;
}

/** The most that work may use of the limited amounts: dollars in billionths. */
export type Allowance = Partial<Omit<Amounts, "toolCalls">>;

/** Tokens of a model call that the provider did not count. */
export interface TokenEstimate {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export const NOTHING: Amounts = { tokens: 0, nanoDollars: 0, toolCalls: 0, modelCalls: 0 };

/** Tokens reserved for a reply if the model profile sets no limit. */
const RESERVED_OUTPUT_TOKENS = 4_096;

/** The provider parameters that limit the tokens of the reply. */
export const OUTPUT_LIMITS = [
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "maxOutputTokens",
] as const;

export type OutputLimit = (typeof OUTPUT_LIMITS)[number];

export function addAmounts(one: Amounts, other: Partial<Amounts>): Amounts {
  return {
    tokens: one.tokens + (other.tokens ?? 0),
    nanoDollars: one.nanoDollars + (other.nanoDollars ?? 0),
    toolCalls: one.toolCalls + (other.toolCalls ?? 0),
    modelCalls: one.modelCalls + (other.modelCalls ?? 0),
  };
}

export function subtractAmounts(one: Amounts, other: Amounts): Amounts {
  return {
    tokens: one.tokens - other.tokens,
    nanoDollars: one.nanoDollars - other.nanoDollars,
    toolCalls: one.toolCalls - other.toolCalls,
    modelCalls: one.modelCalls - other.modelCalls,
  };
}

/** Returns the larger of two of each amount. */
export function largestAmounts(one: Amounts, other: Amounts): Amounts {
  return {
    tokens: Math.max(one.tokens, other.tokens),
    nanoDollars: Math.max(one.nanoDollars, other.nanoDollars),
    toolCalls: Math.max(one.toolCalls, other.toolCalls),
    modelCalls: Math.max(one.modelCalls, other.modelCalls),
  };
}

export function isWithin(one: Amounts, most: Amounts): boolean {
  return (
    one.tokens <= most.tokens &&
    one.nanoDollars <= most.nanoDollars &&
    one.toolCalls <= most.toolCalls &&
    one.modelCalls <= most.modelCalls
  );
}

/** Returns the tokens and the price of a model's usage, by the provider's count or by estimate. */
export function amountsOf(
  usage: TokenUsage | undefined,
  profile: ModelProfile | undefined,
): Pick<Amounts, "tokens" | "nanoDollars"> {
  const { inputTokens, outputTokens, totalTokens = 0 } = usage ?? {};
  const isSplit = inputTokens !== undefined || outputTokens !== undefined;
  const tokens = isSplit ? (inputTokens ?? 0) + (outputTokens ?? 0) : totalTokens;
  return { tokens, nanoDollars: nanoDollarsOf(usage, profile) ?? 0 };
}

/** Returns the most tokens that a reply may have, by the profile's parameters. */
export function maxOutputTokens({ parameters = {} }: Pick<ModelProfile, "parameters">): number {
  const { generationConfig, thinking } = parameters;
  const limit = limitIn(parameters) ?? limitIn(objectOf(generationConfig));
  return limit ?? RESERVED_OUTPUT_TOKENS + thoughtTokens(thinking);
}

/** Returns the tokens that the parameter `thinking` gives a model to think. */
export function thoughtTokens(thinking: Json | undefined): number {
  const { budget_tokens: tokens } = objectOf(thinking);
  return typeof tokens === "number" ? tokens : 0;
}

export function isPriced({ costPer1kInput, costPer1kOutput }: ModelProfile): boolean {
  return costPer1kInput !== undefined && costPer1kOutput !== undefined;
}

/** Returns the limit that parameters have under one of its names. */
export function limitIn(parameters: JsonObject): number | undefined {
  return OUTPUT_LIMITS.map((name) => parameters[name]).find(isLimit);
}

export function isLimit(value: Json | undefined): value is number {
  return typeof value === "number" && value > 0;
}

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
