/** Transport of the AI SDK's `Chat` to a conversation. The server stores the transcript, so only new messages are sent. */

import { DefaultChatTransport, type UIMessage } from "ai";
import { defined } from "../../shared/defined.ts";
import type { ClientOptions } from "../http.ts";
import { apiUrl, authorization, pathOf } from "../requests.ts";

export interface ConversationChatTransportOptions extends Pick<ClientOptions, "baseUrl" | "token"> {
  /** Id of the conversation; the id of the chat by default. */
  conversationId?: string;
  /** The runtime's `fetch` by default. */
  fetch?: typeof globalThis.fetch;
}

/**
 * A transport for `useChat`. The id of a message is its idempotency key, so a repeated message gets the same answer. A turn
 * continues after the page closes; `resume` streams it again from its beginning.
 *
 * @example
 * const { messages, sendMessage } = useChat({ transport: new ConversationChatTransport({ conversationId }), resume: true });
 */
export class ConversationChatTransport<
  Message extends UIMessage = UIMessage,
> extends DefaultChatTransport<Message> {
  constructor({ conversationId, baseUrl, token, fetch }: ConversationChatTransportOptions = {}) {
    const api = (chatId: string) =>
      apiUrl(baseUrl, pathOf("conversations", conversationId ?? chatId, "chat"));
    super({
      headers: () => authorization(token),
      ...defined({ fetch }),
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
        api: api(id),
        body: { id, messages: messages.slice(-1), trigger, messageId },
      }),
      prepareReconnectToStreamRequest: ({ id }) => ({ api: api(id) }),
    });
  }
}
