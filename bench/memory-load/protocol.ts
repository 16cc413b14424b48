/** Names that the Worker and the runner of the case `memory-load` share. */

/** An agent without memory, and one whose conversations recall. */
export const [WITHOUT, REMEMBERING] = ["without", "remembering"];

/** Agents with a memory of their own each. */
export const AGENTS = Array.from({ length: 102 }, (_, n) => `agent-${n}`);

/** The answer of a search. */
export interface Found {
  found: string[];
  semantic?: "all" | "some" | "none";
}
