/**
 * A history that a new conversation continues: checked, and stored as events of its agent's session.
 *
 * SEED-1  The model sees a seeded history like the conversation's own turns, by the same rules of the window. The transcript does not show
 *         it. It is written in the transaction that creates the conversation.
 * SEED-2  Each call is directly followed by its one result. With any other history, the conversation is not created.
 */
import { messageToEvent } from "../../../memory/session/events.ts";
import type { SessionEvent } from "../../../memory/session/session-event.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { Ids } from "../../../ports/ids.ts";
import { tooLarge } from "../../../shared/errors.ts";
import { checkJson } from "../../../shared/json.ts";
import { utf8Length } from "../../../shared/utf8.ts";

/** Size of a history as JSON, in bytes. */
const MAX_BYTES = 1024 * 1024;

/** Throws `INVALID_JSON`, `INVALID_INPUT` or `TOO_LARGE` for a history that is too deep, malformed or too long. */
export function checkHistory(history: unknown): void {
  if (history === undefined) return;
  checkJson(history, "The history");
  if (utf8Length(JSON.stringify(history)) <= MAX_BYTES) return;
  throw tooLarge(`A history may have at most ${MAX_BYTES} bytes of JSON; omit its oldest messages.`);
}

/** Returns a history as events, numbered from 0. `userId` is the user who brings the history. */
export function seedEvents(
  messages: readonly ContextMessage[],
  { sessionId, userId, now, ids }: { sessionId: string; userId: string; now: number; ids: Ids },
): SessionEvent[] {
  const names = new Map<string, string>();
  return messages.map((message) => {
    for (const { id, name } of message.toolCalls ?? []) names.set(id, name);
    const called = message.role === "tool" ? names.get(message.toolCallId ?? "") : undefined;
    const named = called === undefined ? message : { name: called, ...message };
    const metadata = { ...message.metadata, origin: `client:${userId}` };
    return messageToEvent(sessionId, { ...named, metadata }, { id: ids.ulid(), timestamp: now });
  });
}
