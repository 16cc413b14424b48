/** Which messages a turn answers, and where new ones stand. Pure. */
import { toIso } from "../model/call-record.ts";
import { leadingInstructions } from "./history.ts";
import type { ConversationMessage } from "./types.ts";

/** The messages that a turn answers: all since the assistant last spoke, but for the conversation's instructions. */
export function inputOf(messages: readonly ConversationMessage[]): ConversationMessage[] {
  const answered = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  return messages.slice(Math.max(answered, leadingInstructions(messages)));
}

/** The time of a new message: now, and never before the newest one, so that it stands behind what it answers. */
export function notBefore(now: number, newest: ConversationMessage | undefined): string {
  return toIso(newest === undefined ? now : Math.max(now, Date.parse(newest.createdAt)));
}
