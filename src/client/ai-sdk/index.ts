/** `dramatis/ai-sdk`: `useChat` of the AI SDK in front of a conversation. */
export { ConversationChatTransport, type ConversationChatTransportOptions } from "./transport.ts";
export { toUIMessages } from "./ui-messages.ts";
