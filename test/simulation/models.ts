/** The models of a simulation: the first one of every conversation, and those that may stand in for it. */
import type { ModelProfile } from "../../src/model/profile.ts";

export const MODELS: readonly string[] = ["first", "second", "third"];

/** A token of input costs a billionth of a dollar, one of output a thousand times as much. */
export function profileOf(modelId: string): ModelProfile {
  return {
    provider: "openai",
    modelId,
    baseUrl: "http://model/v1",
    costPer1kInput: 1e-6,
    costPer1kOutput: 1e-3,
  };
}
