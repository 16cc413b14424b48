/** The types of journal entries. */
export const ENTRY_TYPES = [
  "conversation.started",
  "turn.started",
  "turn.resumed",
  "turn.waiting",
  "turn.completed",
  "turn.failed",
  "turn.finalized",
  "message.user",
  "message.started",
  "message.reset",
  "message.completed",
  "llm.call.failed",
  "tool.requested",
  "tool.interrupted",
  "tool.completed",
  "tool.failed",
] as const;

export type EntryType = (typeof ENTRY_TYPES)[number];
