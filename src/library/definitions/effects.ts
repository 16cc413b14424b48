/** The order of effects. */
import type { ToolEffect } from "../../protocol/definition-parts.ts";

/** Effects by what they allow: the first may be repeated freely, the last must not be repeated. */
const EFFECTS: readonly ToolEffect[] = ["pure", "idempotent", "once"];

/** Returns the effect that allows less. */
export function strictest(one: ToolEffect, other: ToolEffect): ToolEffect {
  return EFFECTS.indexOf(one) < EFFECTS.indexOf(other) ? other : one;
}
