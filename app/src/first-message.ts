/** Hands the message that begins a conversation from the page that creates it to the page that shows it, once. */
import type { Content } from "../../src/client/index.ts";

const waiting = new Map<string, Content>();

export function leaveFirstMessage(conversationId: string, content: Content): void {
  waiting.set(conversationId, content);
}

/** The message, if there is one; it is not given out a second time. */
export function takeFirstMessage(conversationId: string): Content | undefined {
  const content = waiting.get(conversationId);
  waiting.delete(conversationId);
  return content;
}
