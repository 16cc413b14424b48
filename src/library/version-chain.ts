/** The model profiles of a version chain. */

import type { ModelProfile } from "../model/profile.ts";
import type { VersionChain } from "../protocol/definitions.ts";

/** Returns the profile at `index` in the order of use: 0 is the agent's own, then its fallbacks follow. */
export function profileAt(
  { modelProfile, fallbacks = [] }: Pick<VersionChain, "modelProfile" | "fallbacks">,
  index: number,
): ModelProfile | undefined {
  return [modelProfile, ...fallbacks][index]?.definition;
}
