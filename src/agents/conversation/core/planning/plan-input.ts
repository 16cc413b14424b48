import type { Gate } from "../../../../policy/gate.ts";

/** What comes in beside the signal: time and a fresh id, drawn by the shell. */
export interface PlanInput {
  /** Milliseconds since the epoch. */
  now: number;
  /** The stem for the ids of a turn that starts. */
  stem: string;
  gate: Gate;
  /** How long a client has to run a tool, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
}
