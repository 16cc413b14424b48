import { DramatisError } from "../shared/errors.ts";
import type { ConversationMessage, ConversationRecord } from "./types.ts";

export interface PlanTurnInput {
  conversation: ConversationRecord;
  /** The conversation so far, ascending. */
  messages: readonly ConversationMessage[];
  agent: string;
  /** What the caller wishes: the default planner reads `provider`, `model` and `parameters`. */
  hints?: Record<string, unknown>;
}

export interface PlannedTurn {
  provider: string;
  model: string;
  /** The provider's own (`temperature`, `max_tokens` …). */
  parameters?: Record<string, unknown>;
}

export interface TurnPlanner {
  planTurn(input: PlanTurnInput): PlannedTurn | Promise<PlannedTurn>;
}

/** A provider that is configured, and its default model, if it has one. */
export interface ConfiguredProvider {
  provider: string;
  model?: string;
}

/** A planner that follows hints among what is configured, in the order given. */
export function defaultPlanner(configured: readonly ConfiguredProvider[]): TurnPlanner {
  return { planTurn: ({ hints }) => chooseModel(configured, hints) };
}

/**
 * The choice of the default planner (CHOICE-1). A provider that is not configured is answered as it was asked for: whoever
 * calls it says what there is. Throws `INVALID_INPUT` where no model is known.
 */
export function chooseModel(
  configured: readonly ConfiguredProvider[],
  hints: Record<string, unknown> = {},
): PlannedTurn {
  const [asked, model] = [textHint(hints, "provider"), textHint(hints, "model")];
  const provider = asked ?? providerFor(configured, model);
  if (provider === undefined) {
    throw new DramatisError("INVALID_INPUT", "No provider is configured: add one to `providers`.");
  }
  const known = model ?? configured.find((one) => one.provider === provider)?.model;
  const isConfigured = configured.some((one) => one.provider === provider);
  if (known === undefined && isConfigured) {
    throw new DramatisError(
      "INVALID_INPUT",
      `The provider "${provider}" has no default model: set \`defaultModels["${provider}"]\`, or give the hint \`model\`.`,
    );
  }
  const { parameters } = hints;
  return {
    provider,
    model: known ?? "",
    ...(isRecord(parameters) ? { parameters } : {}),
  };
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
  throw new DramatisError("INVALID_INPUT", `The hint \`${name}\` must be a text that is not empty.`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
