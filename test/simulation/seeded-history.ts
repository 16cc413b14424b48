/** The seeded history of a simulated conversation. */
import { seedEvents } from "../../src/agents/conversation/inbound/seed-history.ts";
import type { SessionEvent } from "../../src/memory/session/session-event.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { Ids } from "../../src/ports/ids.ts";

/** Returns the seeded history. Unless empty, it ends with a call and its result. */
export function seededMessages(exchanges: number): ContextMessage[] {
  return Array.from({ length: exchanges }, (_, index): ContextMessage[] => [
    { role: "user", content: `Before ${index}: a question.` },
    {
      role: "assistant",
      content: `Before ${index}: a look.`,
      toolCalls: [{ id: `before_${index}`, name: "elsewhere", arguments: {} }],
    },
    { role: "tool", content: `"Before ${index}: a result."`, toolCallId: `before_${index}` },
    { role: "assistant", content: `Before ${index}: an answer.` },
  ]).flat();
}

export function seedOf(exchanges: number, sessionId: string, now: number, ids: Ids): SessionEvent[] {
  return seedEvents(seededMessages(exchanges), { sessionId, userId: "ada", now, ids });
}
