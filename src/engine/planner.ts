/**
 * Choice of provider, model and parameters for a turn.
 *
 * CHOICE-1  A hint that names a provider decides. A hint that names a model selects the provider if exactly one has it as
 *           its default. Otherwise the first provider with a default model answers.
 */
import { invalid } from "../shared/errors.ts";
import { isJsonObject } from "../shared/json.ts";
import type { ConversationMessage, ConversationRecord } from "./records.ts";

export interface PlanTurnInput {
  conversation: ConversationRecord;
  /** All messages so far, ascending, including the input of the turn. */
  messages: readonly ConversationMessage[];
  agent: string;
  /** Wishes of the caller. The default planner reads `provider`, `model` and `parameters`. */
  hints?: Record<string, unknown>;
}

export interface PlannedTurn {
  provider: string;
  model: string;
  /** Parameters of the provider (`temperature`, `max_tokens` …). */
  parameters?: Record<string, unknown>;
}

/**
 * Plans a turn.
 *
 * @example
 * const planner: TurnPlanner = {
 *   planTurn: ({ hints }) => ({ provider: "openai", model: hints?.hard ? "gpt-4.1" : "gpt-4.1-mini" }),
 * };
 */
export interface TurnPlanner {
  planTurn(input: PlanTurnInput): PlannedTurn | Promise<PlannedTurn>;
}

export interface ConfiguredProvider {
  provider: string;
  /** Default model of the provider. */
  model?: string;
}

/**
 * Creates the default planner. It follows the hints and fills gaps from the configured providers, in order.
 *
 * @example defaultPlanner([{ provider: "openai", model: "gpt-4.1-mini" }, { provider: "anthropic" }])
 */
export function defaultPlanner(configured: readonly ConfiguredProvider[]): TurnPlanner {
  return { planTurn: ({ hints }) => chooseModel(configured, hints) };
}

/**
 * Chooses provider and model (CHOICE-1). Returns an unknown provider of a hint unchanged, because the call then fails with the list of
 * known providers. Throws `INVALID_INPUT` for a configured provider without a model.
 */
export function chooseModel(
  configured: readonly ConfiguredProvider[],
  hints: Record<string, unknown> = {},
): PlannedTurn {
  const [hinted, model] = [textHint(hints, "provider"), textHint(hints, "model")];
  const provider = hinted ?? providerFor(configured, model);
  if (provider === undefined) throw invalid("No provider is configured: add one to `providers`.");
  const entry = configured.find((one) => one.provider === provider);
  const chosen = model ?? entry?.model;
  if (chosen === undefined && entry !== undefined)
    throw invalid(
      `The provider "${provider}" has no default model: set \`defaultModels["${provider}"]\`, or give the hint \`model\`.`,
    );
  const { parameters } = hints;
  return { provider, model: chosen ?? "", ...(isJsonObject(parameters) ? { parameters } : {}) };
}

function providerFor(
  configured: readonly ConfiguredProvider[],
  model: string | undefined,
): string | undefined {
  const known = configured.filter((one) => one.model !== undefined);
  const byModel = model === undefined ? [] : known.filter((one) => one.model === model);
  const [first] = byModel.length === 1 ? byModel : [...known, ...configured];
  return first?.provider;
}

function textHint(hints: Record<string, unknown>, name: string): string | undefined {
  const value = hints[name];
  if (value === undefined) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw invalid(`The hint \`${name}\` must be a non-empty string.`);
}
