/** Chains of causes and incidents of a conversation's journal, as their readers see them. */
import { z } from "zod";
import type { PageOptions } from "../shared/page.ts";
import { journalEntry } from "./conversation-schemas.ts";

export const CAUSE_DIRECTIONS = ["backward", "forward"] as const;

const causedEntry = journalEntry
  .extend({
    cause: z
      .int()
      .min(1)
      .describe("The `seq` of the entry that it follows from. Absent for the first entry of a turn.")
      .exactOptional(),
  })
  .meta({ id: "CausedEntry", description: "An entry of a chain of causes." });

export const causeChain = z
  .strictObject({
    entries: z.array(causedEntry),
    nextCursor: z.string().exactOptional(),
    partial: z
      .literal(true)
      .describe("The chain may continue beyond the entries that one request reads.")
      .exactOptional(),
  })
  .meta({
    id: "CauseChain",
    description: "The entry and its causes, or the entry and the entries that follow from it.",
  });

const INCIDENT_KINDS = [
  "failure",
  "timeout",
  "refusal",
  "denial",
  "retry",
  "reset",
  "crash",
  "stop",
  "late",
] as const;

export const incident = journalEntry
  .extend({
    kind: z.enum(INCIDENT_KINDS),
    code: z.string().meta({ description: "The code of its error.", example: "TIMEOUT" }).exactOptional(),
  })
  .meta({ id: "Incident", description: "An entry of the journal that is an incident." });

export type CauseDirection = (typeof CAUSE_DIRECTIONS)[number];
export type CauseChain = z.infer<typeof causeChain>;
export type Incident = z.infer<typeof incident>;
export type IncidentKind = Incident["kind"];

/** The options of a chain of causes. */
export interface CauseOptions extends Omit<PageOptions, "order"> {
  /** `backward` when absent. */
  direction?: CauseDirection;
}

/** The options of a list of incidents. */
export interface IncidentOptions extends PageOptions {
  /** Incidents of this turn only. */
  turn?: string;
  /** Incidents with this correlation id only: of the signal, or `{conversationId}:{turnId}`. */
  correlation?: string;
}
