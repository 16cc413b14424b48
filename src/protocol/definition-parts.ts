/** The parts that definitions of several kinds have. */

/** From the most to the least permissive: `pure` calls may repeat freely, `once` calls must not repeat. */
export const TOOL_EFFECTS = ["pure", "idempotent", "once"] as const;

/** The effect of running a tool twice. `once` when absent. */
export type ToolEffect = (typeof TOOL_EFFECTS)[number];

/** Attempts of a tool's call that fails for a reason that may pass. */
export interface RetryPolicy {
  /** The first included. */
  maxAttempts: number;
  /** Milliseconds before the second attempt. The pause doubles before each further one, up to a minute. */
  backoffMs: number;
  /** The pauses between a task's attempts. Default: exponential. */
  backoff?: "none" | "linear" | "exponential";
  /** The longest pause of a task, in milliseconds; a minute when absent. */
  maxDelayMs?: number;
}

/** The source of a pinned definition. Inline definitions have no library. */
export interface Pin {
  library?: string;
  id: string;
  /** 0 for a deployed definition that was pinned while its number was unavailable: the hash identifies it. */
  version: number;
  /** SHA-256 of the canonical JSON of the content, in hex. */
  hash: string;
}

/**
 * `delegate`: the agent works in a conversation of its own, for one turn, and its caller gets the answer. `loop_in`: the agent joins the
 * conversation.
 */
export type AgentMode = "delegate" | "loop_in";

/** A skill: the files of a folder with a `SKILL.md`. */
export interface Skill {
  /** Texts by their paths from the folder, such as `SKILL.md` and `scripts/check.sh`. */
  files: Record<string, string>;
}
