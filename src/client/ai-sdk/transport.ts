/** How the AI SDK's `Chat` reaches a conversation. The conversation keeps what was said; only what is new is sent. */

import { DefaultChatTransport, type UIMessage } from "ai";
import { defined } from "../../shared/defined.ts";
import { currentToken, type Token } from "../admission.ts";

export interface ConversationChatTransportOptions {
  /** The conversation; the chat's own id when absent. */
  conversationId?: string;
  /** Address of the server, without a path; the page's own when absent. */
  baseUrl?: string;
  /** Bearer token; a function is asked at each request. */
  token?: Token;
  /** The runtime's own when absent. */
  fetch?: typeof globalThis.fetch;
}

/**
 * A transport for `useChat`. A message's id is its idempotency key, so one that is sent again is answered the same. A
 * turn goes on when the page leaves; `resume` takes up its stream from the beginning.
 *
 * @example
 * const { messages, sendMessage } = useChat({ transport: new ConversationChatTransport({ conversationId }), resume: true });
 */
export class ConversationChatTransport<
  Message extends UIMessage = UIMessage,
> extends DefaultChatTransport<Message> {
  constructor({ conversationId, baseUrl = "", token, fetch }: ConversationChatTransportOptions = {}) {
    const api = (chatId: string) =>
      `${baseUrl.replace(/\/$/, "")}/api/conversations/${encodeURIComponent(conversationId ?? chatId)}/chat`;
    super({
      headers: async (): Promise<Record<string, string>> => {
        const bearer = await currentToken(token);
        return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
      },
      ...defined({ fetch }),
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
        api: api(id),
        body: { id, messages: messages.slice(-1), trigger, messageId },
      }),
      prepareReconnectToStreamRequest: ({ id }) => ({ api: api(id) }),
    });
  }
}
