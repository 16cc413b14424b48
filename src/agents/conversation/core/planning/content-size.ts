/** How much content turns hold, in characters. A result is measured once: it never changes. */
import type { ToolSpec } from "../../../../model/context.ts";
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import type { ConversationState, Turn } from "../state.ts";

const measured = new WeakMap<ToolResult, number>();

export function resultLength(result: ToolResult): number {
  const known = measured.get(result);
  if (known !== undefined) return known;
  const length = JSON.stringify(result).length;
  measured.set(result, length);
  return length;
}

/** The results of a turn together. */
export function resultsLength({ operations }: Turn): number {
  return operations.reduce((sum, { result }) => sum + (result === undefined ? 0 : resultLength(result)), 0);
}

export function inputLength(content: Turn["input"]): number {
  return typeof content === "string" ? content.length : JSON.stringify(content).length;
}

const measuredTools = new WeakMap<readonly ToolSpec[], number>();

/** The tools that a turn brings. They never change, either. */
export function toolsLength(tools: readonly ToolSpec[] | undefined): number {
  if (tools === undefined) return 0;
  const known = measuredTools.get(tools);
  if (known !== undefined) return known;
  const length = JSON.stringify(tools).length;
  measuredTools.set(tools, length);
  return length;
}

/** Inputs, tools and results of all active turns together. */
export function activeContent({ active }: ConversationState): number {
  return [...active.values()].reduce(
    (sum, turn) => sum + inputLength(turn.input) + toolsLength(turn.tools) + resultsLength(turn),
    0,
  );
}
