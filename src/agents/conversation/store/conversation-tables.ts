/** The schema of a conversation's storage, and its migrations. */
import type { ActorSchema } from "../../base/storage/schema-upgrade.ts";

export const RECORD_KEY = "conversation";

/** The prefixes of a conversation's keys, except the key of its record. */
export const CONVERSATION_KEYS = [
  "a2a.",
  "answer:",
  "ask:",
  "chain:",
  "erasing:",
  "handles:",
  "importing",
  "inherited",
  "late:",
  "opening:",
  "seen:",
  "slept",
  "subscriber:",
  "tool:",
  "uninvited:",
  "webhook:",
] as const;

export const CONVERSATION_SCHEMA: ActorSchema = { of: "conversation", first: 1, steps: [] };
