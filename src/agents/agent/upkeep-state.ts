/** The state of the upkeep of an agent's memory. Times are milliseconds since the epoch. */
import type { Member } from "../../memory/upkeep/joining.ts";

/** A consolidation that has begun. */
export interface Run {
  operationId: string;
  attempt: number;
  members: Member[];
  /** The summary that is made again; absent for one of a round. */
  whole?: number;
  /** The earliest time of the attempt. */
  notBefore: number;
}

/** The groups of one time, one after another. */
interface Round {
  startedAt: number;
  /** The number of the first memory of the group before. */
  after: number;
  /** One of its consolidations was given up. */
  failed?: true;
}

/** The state of an upkeep, as it is stored. */
export interface UpkeepState {
  /** The time of the next upkeep. */
  nextAt?: number;
  round?: Round;
  /** The round before. */
  last?: Pick<Round, "startedAt" | "failed">;
  run?: Run;
  /** A consolidation of the round that goes on after that one. */
  paused?: Run;
}
