/** The model profiles of a version chain, and the budget of their contexts. */

import type { ModelProfile } from "../../model/profile.ts";
import type { VersionChain } from "../../protocol/definitions.ts";

/** Returns the profile at `index` in the order of use: 0 is the agent's own, then its fallbacks follow. */
export function profileAt(
  { modelProfile, fallbacks = [] }: Pick<VersionChain, "modelProfile" | "fallbacks">,
  index: number,
): ModelProfile | undefined {
  return [modelProfile, ...fallbacks][index]?.definition;
}

/** Returns the profile of the model that summarises histories. */
export function compactionProfile({ modelProfile, compactionProfile: own }: VersionChain): ModelProfile {
  return (own ?? modelProfile).definition;
}

/** Tokens of instructions, tools and history where neither the persona nor the profile sets a limit. */
const DEFAULT_CONTEXT_TOKENS = 60_000;

/** Returns the tokens of instructions, tools and history in a call of a model; the first one's when absent. */
export function contextTokens(
  { persona, modelProfile }: Pick<VersionChain, "persona" | "modelProfile">,
  profile = modelProfile.definition,
): number {
  const limits = [persona.definition.memory?.contextTokens, profile.contextTokens];
  const set = limits.filter((limit) => limit !== undefined);
  return set.length === 0 ? DEFAULT_CONTEXT_TOKENS : Math.min(...set);
}
