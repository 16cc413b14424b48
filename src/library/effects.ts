/** How tool effects compare. Pure. */
import type { ToolEffect } from "../protocol/definitions.ts";

/** From what may be repeated freely to what must not be. */
const STRICTNESS: Record<ToolEffect, number> = { pure: 0, idempotent: 1, once: 2 };

/** Whether `effect` promises more about repeating than `deployed` does. */
export function claimsMore(effect: ToolEffect, deployed: ToolEffect): boolean {
  return STRICTNESS[effect] < STRICTNESS[deployed];
}

/** The one that allows less. */
export function strictest(one: ToolEffect, other: ToolEffect): ToolEffect {
  return claimsMore(one, other) ? other : one;
}
