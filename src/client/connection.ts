/** A live connection to one conversation, for any JavaScript runtime with WebSockets. React code uses `useConversation`. */
import { PartySocket } from "partysocket";
import { defined } from "../shared/defined.ts";
import { createClient } from "./http.ts";
import {
  httpOrigin,
  NO_BACKOFF,
  parseHost,
  ReconnectPolicy,
  resumingWebSocket,
  type WebSocketClass,
  whenBack,
} from "./reconnect.ts";
import type { Token } from "./requests.ts";
import { type ConversationActions, ConversationSession } from "./session.ts";
import { isLost, type LiveConversation } from "./state.ts";

export interface ConnectOptions {
  /** Id of the conversation. */
  id: string;
  /** `https://example.com`, or a bare host: `ws` for a local address, `wss` for others. */
  host: string;
  /** The runtime's `WebSocket` by default. */
  WebSocket?: WebSocketClass;
  /** A function is called for each attempt, and once more after the server rejects its token. */
  token?: Token;
  /** Time for an open connection to record a message, in milliseconds; 15 000 by default. Then it is replaced. */
  acknowledgeWithin?: number;
}

export interface ConversationConnection extends ConversationActions {
  /** Returns the current state: the same object until it changes. */
  getSnapshot(): LiveConversation;
  /** Calls the listener after each change. Returns a function that unsubscribes it. */
  subscribe(listener: () => void): () => void;
  /** Closes the connection. Messages that are not recorded stay in `pending`. */
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
  const { id, host, token, acknowledgeWithin } = options;
  const policy = new ReconnectPolicy(token);
  const session = new ConversationSession(defined({ acknowledgeWithin }));
  const socket = new PartySocket({
    ...parseHost(host),
    ...NO_BACKOFF,
    basePath: `conversations/${encodeURIComponent(id)}`,
    WebSocket: resumingWebSocket(session.resumeFrom, options.WebSocket),
    maxEnqueuedMessages: 0,
    protocols: policy.nextAttempt,
    shouldReconnectOnClose: policy.shouldReconnect,
  });
  socket.addEventListener("open", () => {
    policy.opened();
    session.opened(socket);
  });
  socket.addEventListener("message", ({ data }) => {
    if (session.received(data)) policy.accepted();
  });
  socket.addEventListener("close", ({ code }) => session.closed({ final: !socket.shouldReconnect, code }));
  const reconnect = () => {
    policy.atOnce();
    socket.reconnect();
  };
  const leave = whenBack(() => {
    if (isLost(session.getSnapshot())) reconnect();
  });
  const overHttp = () => createClient({ baseUrl: httpOrigin(socket), ...defined({ token }) });
  const { getSnapshot, subscribe, send, retry, retryTurn, discard, submitToolResult, addHistory } = session;
  const { claimTool, stop, cancelTurn, cancel, resume } = session;
  return {
    ...{ getSnapshot, subscribe, send, retry, retryTurn, discard, submitToolResult, addHistory },
    ...{ claimTool, stop, cancelTurn, cancel, resume },
    update: (changes) => overHttp().conversations.update(id, changes),
    complete: (options) => overHttp().conversations.complete(id, options),
    regenerate: (turnId) => overHttp().turns.regenerate(id, turnId),
    edit: (turnId, content) => overHttp().turns.edit(id, turnId, { content }),
    resolveApproval: (operationId, answer) => overHttp().operations.resolveApproval(id, operationId, answer),
    reconnect,
    close: () => {
      leave();
      policy.close();
      socket.close();
      session.closed({ final: true });
    },
  };
}
