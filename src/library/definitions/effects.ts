/** Orders effects by strictness. */
import type { ToolEffect } from "../../protocol/definition-parts.ts";

/** From the most to the least permissive: `pure` calls may repeat freely, `once` calls must not repeat. */
const EFFECTS: readonly ToolEffect[] = ["pure", "idempotent", "once"];

/** Returns the stricter effect. */
export function strictest(one: ToolEffect, other: ToolEffect): ToolEffect {
  return EFFECTS.indexOf(one) < EFFECTS.indexOf(other) ? other : one;
}
