/** What the runner and the Worker agree on: the systems, and the routes `POST /:system/:actor/:operation`. */

export const SYSTEMS = ["dramatis", "durable-object", "agent", "ai-chat-agent", "think"] as const;

export type SystemName = (typeof SYSTEMS)[number];

/** What a system's storage was asked to do since its actor was first used. */
export interface Counts {
  /** SQL statements run; key-value calls are none. */
  statements: number;
  /** Rows written by SQL, plus one for each key put or deleted and each alarm set. */
  rows: number;
}

/** Actors with this prefix count statements and rows; all others run on untouched storage. */
export const METERED_PREFIX = "metered-";

/** One system under test, as the Worker drives it. */
export interface System {
  /** Called once before anything else. */
  prepare?(): Promise<void>;
  /** Runs one turn in the actor and resolves with the answer, once all of it is committed. */
  turn(actor: string, text: string, first: boolean): Promise<string>;
  /** Fills a new actor with history through the system's own storage; resolves with what it then holds. */
  seed(actor: string, messages: number): Promise<number>;
  counts(actor: string): Promise<Counts>;
}
