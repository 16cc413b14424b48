/** The notes of the platform in Chat requests, as user messages. */

const LABEL = "[Note of the platform] ";

/** Returns messages with the notes as the context has them: of the role `system`, without their label. */
export function withNotes<Message extends { role: string; content?: unknown }>(
  messages: readonly Message[],
): Message[] {
  return messages.map((message) => {
    const { role, content } = message;
    if (role !== "user" || typeof content !== "string" || !content.startsWith(LABEL)) return message;
    return { ...message, role: "system", content: content.slice(LABEL.length) };
  });
}
