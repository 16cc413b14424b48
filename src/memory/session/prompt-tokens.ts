/** Estimates the input tokens of an `llm` action for its reservation. Pure. */
import type { LlmAction, PromptDefinition } from "../../protocol/task-definition.ts";
import type { Json } from "../../shared/json.ts";
import { estimateTokens } from "./tokens.ts";

/** Extra tokens for data that loops and earlier steps add to a text. */
const ROOM_TOKENS = 4_000;

export type LlmTexts = Pick<
  LlmAction<PromptDefinition, unknown>,
  "prompt" | "systemPrompt" | "template" | "outputSchema" | "maxInputTokens"
>;

/** Caches token counts of texts while the texts are in memory. */
const counted = new WeakMap<LlmTexts, number>();

/**
 * Returns the most input tokens of a call. This is `maxInputTokens`, or an estimate from the texts, the answer's schema and the tokens of
 * the task's input.
 */
export function inputLimit(action: LlmTexts, input: number): number {
  return action.maxInputTokens ?? textTokens(action) + input + ROOM_TOKENS;
}

function textTokens(action: LlmTexts): number {
  const known = counted.get(action);
  if (known !== undefined) return known;
  const { prompt, systemPrompt = prompt?.systemPrompt, template = prompt?.template } = action;
  const { outputSchema = prompt?.produces } = action;
  const examples = prompt?.examples === undefined ? "" : JSON.stringify(prompt.examples);
  // The texts precede each example, too.
  const times = 1 + (prompt?.examples?.length ?? 0);
  const tokens =
    estimateTokens(systemPrompt ?? "") +
    times * estimateTokens(template ?? "") +
    estimateTokens(examples) +
    schemaTokens(outputSchema);
  counted.set(action, tokens);
  return tokens;
}

export function schemaTokens(schema: Json | undefined): number {
  return schema === undefined ? 0 : estimateTokens(JSON.stringify(schema));
}

const inputs = new WeakMap<object, number>();

export function inputTokens(input: Json): number {
  if (typeof input !== "object" || input === null) return estimateTokens(JSON.stringify(input));
  const known = inputs.get(input) ?? estimateTokens(JSON.stringify(input));
  inputs.set(input, known);
  return known;
}
