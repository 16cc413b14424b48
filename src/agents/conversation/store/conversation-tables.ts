/** The schema of a conversation's storage, and its migrations. Version 1 had its number under a key of its own. */
import type { ActorSchema } from "../../base/storage/schema-upgrade.ts";

/** The key of the record. */
export const RECORD_KEY = "conversation";

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
    {
      version: 3,
      name: "a conversation has several agents",
      up: ({ keyValue }) => {
        const record = keyValue.get<{ agentId: string; chain: object }>(RECORD_KEY);
        if (record === undefined) return;
        const { agentId: id, chain, ...others } = record;
        keyValue.put(RECORD_KEY, { ...others, agents: [{ id, chain }] });
      },
    },
  ],
};
