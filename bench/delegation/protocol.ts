/** The protocol between runner and servers: the systems, and the routes `POST /:system/:actor/:operation`. */
import type { Counts } from "../turns/protocol.ts";

export const SYSTEMS = ["dramatis", "think", "mastra"] as const;

export type SystemName = (typeof SYSTEMS)[number];

/** A measured system, as its server drives it. An actor is one manager with a conversation and its own clerk. */
export interface System {
  /** Creates the manager and its clerk. */
  prepare?(actor: string): Promise<void>;
  /** Runs one turn of the manager. Resolves with the answer when the whole turn is committed. */
  turn(actor: string, text: string): Promise<string>;
  /** Puts the clerk to sleep. Absent if the clerk never sleeps. */
  sleep?(actor: string): Promise<void>;
  /** Counts the storage operations of actors that start from now on. */
  meter?(): Promise<void>;
  /** Storage operations so far, by part of the system. */
  counts?(): Promise<Record<string, Counts>>;
}

/** Serves one operation. Returns `null` for an unknown operation. */
export async function operate(
  system: System,
  { actor, operation, body }: { actor: string; operation: string | undefined; body: string },
): Promise<string | null> {
  switch (operation) {
    case "prepare":
      await system.prepare?.(actor);
      return "ready";
    case "turn":
      return system.turn(actor, body);
    case "sleep":
      await system.sleep?.(actor);
      return "asleep";
    case "meter":
      await system.meter?.();
      return "metered";
    case "counts":
      return JSON.stringify((await system.counts?.()) ?? {});
    default:
      return null;
  }
}
