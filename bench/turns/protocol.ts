/** The protocol between runner and Worker: the systems, and the routes `POST /:system/:actor/:operation`. */

export const SYSTEMS = [
  "dramatis",
  "durable-object",
  "safe-object",
  "agent",
  "ai-chat-agent",
  "think",
] as const;

export type SystemName = (typeof SYSTEMS)[number];

/** Storage operations of a system since the first call of its actor. */
export interface Counts {
  /** SQL statements, without key-value calls. */
  statements: number;
  /** Rows written by SQL, plus one per key put or deleted and per alarm set. */
  rows: number;
}

/** Name prefix of actors that count storage operations. */
export const METERED_PREFIX = "metered-";

/** One measured system, as the Worker drives it. */
export interface System {
  /** Prepares the system. Called once, before all other methods. */
  prepare?(): Promise<void>;
  /** Runs one turn in the actor. Resolves with the answer when the whole turn is committed. */
  turn(actor: string, text: string, first: boolean): Promise<string>;
  /**
   * Fills a new actor with history through the system's own storage. Resolves with the resulting number of messages.
   */
  seed(actor: string, messages: number): Promise<number>;
  counts(actor: string): Promise<Counts>;
}
