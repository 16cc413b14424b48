/** The schema of a conversation's storage, and its migrations. */
import type { ActorSchema } from "../../base/storage/schema-upgrade.ts";

/** The key of the record. */
export const RECORD_KEY = "conversation";

export const CONVERSATION_SCHEMA: ActorSchema = { of: "conversation", first: 1, steps: [] };
