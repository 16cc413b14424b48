/** The models of a simulation: the first model of every conversation, and its fallbacks. */
import type { ModelProfile } from "../../src/model/profile.ts";

export const MODELS: readonly string[] = ["first", "second", "third"];

/** Prices: a billionth of a dollar per input token, and a thousand times that per output token. */
export function profileOf(modelId: string): ModelProfile {
  return {
    provider: "openai",
    modelId,
    baseUrl: "http://model/v1",
    costPer1kInput: 1e-6,
    costPer1kOutput: 1e-3,
  };
}
