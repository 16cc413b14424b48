/** A live connection to one conversation for any JavaScript runtime with WebSockets; React code uses `useConversation`. */
import { PartySocket } from "partysocket";
import type { ToolOutcome } from "../protocol/requests.ts";
import type { Content } from "../shared/content.ts";
import { Login, type Token } from "./admission.ts";
import type { HistoryPage } from "./history.ts";
import { parseHost, reconnection, resumingWebSocket, type WebSocketClass } from "./resume.ts";
import { ConversationSession, type SendOptions } from "./session.ts";
import type { LiveConversation } from "./state.ts";

export interface ConnectOptions {
  /** The conversation's id. */
  id: string;
  /** `https://example.com`, or a bare host: `ws` on a local address, `wss` elsewhere. */
  host: string;
  /** The runtime's own when absent. */
  WebSocket?: WebSocketClass;
  /** Bearer token; a function is asked at each attempt, and again when the server takes the last one no longer. */
  token?: Token;
  /** How long an open connection may leave a message unrecorded, in milliseconds; 15 000 when absent. */
  acknowledgeWithin?: number;
}

export interface ConversationConnection {
  /** The state now; the same object until it changes. */
  getSnapshot(): LiveConversation;
  /** Calls the listener after each change; returns how to stop. */
  subscribe(listener: () => void): () => void;
  /** Sends a message as soon as it can, and again after a lost connection; returns its client id. */
  send(content: Content, options?: SendOptions): string;
  /** Sends a rejected message once more; returns its client id, or `null` if there is no such message. */
  retry(clientId: string): string | null;
  /** Forgets a message that was not recorded. */
  discard(clientId: string): void;
  /** Gives the result of a tool that this client runs, and again after a lost connection. */
  submitToolResult(operationId: string, outcome: ToolOutcome): void;
  /** Adds a page of older messages. */
  addHistory(page: HistoryPage): void;
  /** Connects anew at once, also after the connection was closed. */
  reconnect(): void;
  /** Closes the connection; what was not recorded stays in `pending`. */
  close(): void;
}

/**
 * Connects to a conversation and stays connected.
 *
 * @example
 * const conversation = connectConversation({ id: "conv_…", host: "http://127.0.0.1:8787" });
 * conversation.subscribe(() => render(conversation.getSnapshot()));
 * conversation.send("What is 12*(3+4)?");
 */
export function connectConversation(options: ConnectOptions): ConversationConnection {
  const { id, host, acknowledgeWithin } = options;
  const admission = new Login(options.token);
  const session = new ConversationSession(acknowledgeWithin === undefined ? {} : { acknowledgeWithin });
  const socket = new PartySocket({
    ...parseHost(host),
    ...reconnection,
    basePath: `conversations/${encodeURIComponent(id)}`,
    WebSocket: resumingWebSocket(session.resumeFrom, options.WebSocket),
    maxEnqueuedMessages: 0,
    protocols: admission.protocols,
    shouldReconnectOnClose: admission.returnsAfter,
  });
  const transport = {
    send: (data: string) => void socket.send(data),
    reconnect: () => socket.reconnect(),
    close: () => socket.close(),
  };
  socket.addEventListener("open", () => session.opened(transport));
  socket.addEventListener("message", ({ data }) => {
    if (session.received(data)) admission.entered();
  });
  socket.addEventListener("close", ({ code }) => session.closed({ final: !socket.shouldReconnect, code }));
  return {
    getSnapshot: session.getSnapshot,
    subscribe: session.subscribe,
    send: session.send,
    retry: session.retry,
    discard: session.discard,
    submitToolResult: session.submitToolResult,
    addHistory: session.addHistory,
    reconnect: () => socket.reconnect(),
    close: () => socket.close(),
  };
}
