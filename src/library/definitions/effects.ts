/** Orders effects by strictness. */
import { TOOL_EFFECTS, type ToolEffect } from "../../protocol/definition-parts.ts";

export function strictest(one: ToolEffect, other: ToolEffect): ToolEffect {
  return TOOL_EFFECTS.indexOf(one) < TOOL_EFFECTS.indexOf(other) ? other : one;
}
