/** Hides the messages of replaced turns. Pure. */
import type { MessageView } from "../protocol/conversation-schemas.ts";
import { parseItemId } from "../protocol/ids.ts";

/**
 * Returns the messages without the turns that later turns have replaced: the conversation as its agents see it. `messages` are in order.
 *
 * @example newestVersions(state.messages)
 */
export function newestVersions<Message extends Pick<MessageView, "turnId" | "regenerates" | "edits">>(
  messages: readonly Message[],
): Message[] {
  const spans: { first: number; next: number }[] = [];
  const numberOf = (id: string) => parseItemId(id)?.n ?? 0;
  for (const { turnId, regenerates, edits } of messages) {
    const old = regenerates ?? edits;
    if (old !== undefined) spans.push({ first: numberOf(old), next: numberOf(turnId) });
  }
  return messages.filter(({ turnId }) => {
    const n = numberOf(turnId);
    return !spans.some(({ first, next }) => first <= n && n < next);
  });
}
