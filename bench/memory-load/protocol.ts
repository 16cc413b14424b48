/** Names that the Worker and the runner of the case `memory-load` share. */

/** An agent without memory, and an agent that recalls. */
export const [WITHOUT, REMEMBERING] = ["without", "remembering"];

/** Agents, each with its own memory. */
export const AGENTS = Array.from({ length: 102 }, (_, n) => `agent-${n}`);

/** The answer of a search. */
export interface Found {
  found: string[];
  semantic?: "all" | "some" | "none";
}
