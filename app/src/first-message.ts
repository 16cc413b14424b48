/** Passes the first message of a conversation from the page that creates it to the page that sends it. */
import type { Content } from "../../src/client/index.ts";

const messages = new Map<string, Content>();

export function putFirstMessage(conversationId: string, content: Content): void {
  messages.set(conversationId, content);
}

/** Returns the first message and forgets it, so that it is sent once. */
export function takeFirstMessage(conversationId: string): Content | undefined {
  const content = messages.get(conversationId);
  messages.delete(conversationId);
  return content;
}
