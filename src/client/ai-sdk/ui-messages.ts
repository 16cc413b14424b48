/**
 * A conversation's messages as those of the AI SDK. Pure.
 *
 * UISTREAM-4  A message has the id that it has in a chat that watched it: the user's the one that the page gave it, the
 *             agent's that of its turn.
 */

import type { UIMessage } from "ai";
import type { MessageView } from "../../protocol/views.ts";
import type { Content } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";

type Part = UIMessage["parts"][number];

/**
 * Messages for `useChat({ messages })`, from a page of the transcript in its order. The transcript has no tool calls: what an
 * agent did on the way is seen live only.
 *
 * @example
 * const chat = useChat({ messages: toUIMessages((await client.messages.list(id)).messages), transport });
 */
export function toUIMessages(messages: readonly MessageView[]): UIMessage[] {
  const shown = new Map<string, UIMessage>();
  for (const { id, turnId, clientId, role, content } of messages) {
    const key = role === "user" ? (clientId ?? id) : turnId;
    const before = shown.get(key);
    const parts = partsOf(content);
    if (before === undefined)
      shown.set(key, { id: key, role: role === "user" ? "user" : "assistant", parts });
    else before.parts.push(...parts);
  }
  return [...shown.values()];
}

function partsOf(content: Content): Part[] {
  if (typeof content === "string") return [{ type: "text", text: content, state: "done" }];
  return content.map((part): Part => {
    if (part.type === "text") return { type: "text", text: part.text, state: "done" };
    const { type, url, mediaType, name } = part;
    const fallback = type === "image" ? "image/*" : "application/octet-stream";
    return {
      type: "file",
      url,
      mediaType: mediaType ?? fallback,
      ...defined({ filename: name }),
    };
  });
}
