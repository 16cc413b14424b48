/** The schema of a conversation's storage, and its migrations. Version 1 had its number under a key of its own. */
import type { ActorSchema } from "../../base/storage/schema-upgrade.ts";

export const CONVERSATION_SCHEMA: ActorSchema = {
  of: "conversation",
  first: 1,
  steps: [
    {
      version: 2,
      name: "the record carries the version",
      up: ({ keyValue }) => {
        keyValue.delete("schema");
      },
    },
  ],
};
