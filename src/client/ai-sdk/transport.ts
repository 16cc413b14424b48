/** Transport of the AI SDK's `Chat` to a conversation. The server stores the transcript, so only new messages are sent. */
import { DefaultChatTransport, type UIMessage } from "ai";
import { defined } from "../../shared/defined.ts";
import { createClient } from "../http.ts";
import type { ClientOptions } from "../options.ts";
import { apiUrl, authorization, pathOf } from "../requests.ts";
import { TurnStopper } from "./turn-stopper.ts";

export interface ConversationChatTransportOptions extends Pick<ClientOptions, "baseUrl" | "token"> {
  /** Id of the conversation; the id of the chat by default. */
  conversationId?: string;
  /** The runtime's `fetch` by default. */
  fetch?: typeof globalThis.fetch;
}

/**
 * A transport for `useChat`. The id of a message is its idempotency key, so a repeated message gets the same answer. A turn
 * continues after the page closes; `resume` streams it again from its beginning. `stop()` of the chat stops the turn.
 *
 * @example
 * const chat = new Chat({ transport: new ConversationChatTransport({ conversationId }) });
 * const { messages, sendMessage, stop } = useChat({ chat, resume: true });
 */
export class ConversationChatTransport<
  Message extends UIMessage = UIMessage,
> extends DefaultChatTransport<Message> {
  readonly #stopper: TurnStopper;
  readonly #conversationOf: (chatId: string) => string;

  constructor({
    conversationId,
    baseUrl,
    token,
    fetch: send = (input, init) => fetch(input, init),
  }: ConversationChatTransportOptions = {}) {
    const conversationOf = (chatId: string) => conversationId ?? chatId;
    const api = (chatId: string) => apiUrl(baseUrl, pathOf("conversations", conversationOf(chatId), "chat"));
    // A page that closes after the click still sends the stop.
    const lasting = (url: string, init: RequestInit) => send(url, Object.assign(init, { keepalive: true }));
    const { turns } = createClient({ ...defined({ baseUrl, token }), fetch: lasting });
    const stopper = new TurnStopper(turns, send);
    super({
      headers: () => authorization(token),
      fetch: stopper.fetch,
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
        api: api(id),
        body: { id, messages: messages.slice(-1), trigger, messageId },
      }),
      prepareReconnectToStreamRequest: ({ id }) => ({ api: api(id) }),
    });
    this.#stopper = stopper;
    this.#conversationOf = conversationOf;
  }

  override sendMessages(options: Parameters<DefaultChatTransport<Message>["sendMessages"]>[0]) {
    this.#begin(options, false);
    return super.sendMessages(options);
  }

  override reconnectToStream(options: Parameters<DefaultChatTransport<Message>["reconnectToStream"]>[0]) {
    this.#begin(options, true);
    return super.reconnectToStream(options);
  }

  #begin(
    { chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal | undefined },
    isResume: boolean,
  ) {
    this.#stopper.begin({ chatId, conversationId: this.#conversationOf(chatId), abortSignal }, isResume);
  }
}
