/** The state of the upkeep of an agent's memory. Times are milliseconds since the epoch. */
import type { Member } from "../../memory/upkeep/consolidation.ts";

export interface Run {
  operationId: string;
  attempt: number;
  members: Member[];
  /** The summary to rederive. Absent in a regular round. */
  whole?: number;
  notBefore: number;
}

/** The groups of one scheduled upkeep, processed in sequence. */
interface Round {
  startedAt: number;
  /** The number of the first memory of the previous group. */
  after: number;
  /** One of its consolidations failed for good. */
  failed?: true;
}

export interface UpkeepState {
  nextAt?: number;
  round?: Round;
  last?: Pick<Round, "startedAt" | "failed">;
  run?: Run;
  /** A consolidation of the round, paused until the current run ends. */
  paused?: Run;
}
