/** The models of a version chain. */

import type { ModelProfile } from "../model/profile.ts";
import type { VersionChain } from "../protocol/definitions.ts";

/** The profile that makes attempt `index` of a chain's models: 0 is the agent's own, then its fallbacks in order. */
export function profileAt(
  { modelProfile, fallbacks = [] }: Pick<VersionChain, "modelProfile" | "fallbacks">,
  index: number,
): ModelProfile | undefined {
  return [modelProfile, ...fallbacks][index]?.definition;
}
