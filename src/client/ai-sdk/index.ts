/** Entry `dramatis/ai-sdk`: the AI SDK's `useChat` over a conversation. */
export { ConversationChatTransport, type ConversationChatTransportOptions } from "./transport.ts";
export { toUIMessages } from "./ui-messages.ts";
