/**
 * Converts a conversation's messages to the AI SDK's form. Pure.
 *
 * UISTREAM-4  A message has the same id as in a chat that received it live. A user message has the id from the page. An agent message has
 *             the id of its turn. The user's message of a regenerated turn keeps its first id. Replaced turns are left out.
 */
import type { UIMessage } from "ai";
import type { MessageView } from "../../protocol/conversation-schemas.ts";
import { parseItemId } from "../../protocol/ids.ts";
import type { Content } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { newestVersions } from "../newest-versions.ts";

type Part = UIMessage["parts"][number];

/**
 * Converts a page of the transcript, oldest first, to messages for `useChat({ messages })`. The transcript contains no tool
 * calls; a chat shows them live only.
 *
 * @example
 * const chat = useChat({ messages: toUIMessages((await client.messages.list(id)).messages), transport });
 */
export function toUIMessages(messages: readonly MessageView[]): UIMessage[] {
  const converted = new Map<string, UIMessage>();
  const first = new Map<string, string>();
  for (const { id, turnId, clientId, regenerates = "", role } of messages)
    if (role === "user") first.set(turnId, first.get(regenerates) ?? clientId ?? id);
  for (const { id: messageId, turnId, clientId, role: author, content } of newestVersions(messages)) {
    const isUser = author === "user";
    // If an agent starts the turn of another agent, it speaks in a separate message.
    const isAnswer = !isUser && parseItemId(messageId)?.item !== 0;
    const id = isAnswer ? turnId : isUser ? (first.get(turnId) ?? messageId) : (clientId ?? messageId);
    const before = converted.get(id);
    const parts = partsOf(content);
    if (before !== undefined) before.parts.push(...parts);
    else converted.set(id, { id, role: isUser ? "user" : "assistant", parts });
  }
  return [...converted.values()];
}

function partsOf(content: Content): Part[] {
  if (typeof content === "string") return [{ type: "text", text: content, state: "done" }];
  return content.map((part): Part => {
    if (part.type === "text") return { type: "text", text: part.text, state: "done" };
    const fallback = part.type === "image" ? "image/*" : "application/octet-stream";
    const { url, mediaType = fallback, name } = part;
    return { type: "file", url, mediaType, ...defined({ filename: name }) };
  });
}
