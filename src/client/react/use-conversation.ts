/**
 * `dramatis/react`: a conversation in a React component, live. Built on the SDK's `useAgent`, which owns the socket;
 * what goes over it belongs to the same session that `connectConversation` uses.
 */
import { useAgent } from "agents/react";
import { PartySocket } from "partysocket";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { ToolOutcome } from "../../protocol/requests.ts";
import type { Content } from "../../shared/content.ts";
import { Login, type Token } from "../admission.ts";
import type { HistoryPage } from "../history.ts";
import { isFinalClose, parseHost, reconnection, resumingWebSocket, type WebSocketClass } from "../resume.ts";
import { ConversationSession, type SendOptions } from "../session.ts";
import {
  type ConnectionStatus,
  isAnswering,
  type LiveConversation,
  type TranscriptMessage,
  visibleMessages,
} from "../state.ts";

export type { LiveConversation, TranscriptMessage, TurnItem, TurnState } from "../state.ts";

export interface UseConversationOptions {
  /** `https://example.com`, or a bare host; the page's own when absent. */
  host?: string;
  /** The browser's own when absent. */
  WebSocket?: WebSocketClass;
  /** Bearer token; a function is asked at each attempt, and again when the server takes the last one no longer. */
  token?: Token;
}

export interface Conversation {
  state: LiveConversation;
  /** Recorded, streaming and unsent messages as one list. */
  messages: TranscriptMessage[];
  status: ConnectionStatus;
  /** Some turn is at work. */
  answering: boolean;
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
}

/**
 * The conversation with this id, from its last messages on. All functions stay the same between renders.
 *
 * @example
 * const { messages, send } = useConversation(id);
 */
export function useConversation(id: string, options: UseConversationOptions = {}): Conversation {
  const { session, admission, socketClass } = useSession(id, options);
  const { token } = options;
  useEffect(() => {
    admission.token = token;
  }, [admission, token]);
  const agent = useAgent({
    agent: "conversation",
    name: id,
    ...address(options.host),
    ...reconnection,
    protocols: admission.protocols,
    WebSocket: socketClass,
    maxEnqueuedMessages: 0,
    onOpen: ({ target }) => {
      const socket = socketOf(target, id);
      if (socket === null) return;
      session.opened({
        send: (data) => void socket.send(data),
        reconnect: () => socket.reconnect(),
        close: () => socket.close(),
      });
    },
    onMessage: ({ target, data }) => {
      if (socketOf(target, id) !== null && session.received(data)) admission.entered();
    },
    onClose: ({ target, code }) => {
      const socket = socketOf(target, id);
      if (socket === null) return;
      // The SDK comes back by itself after any other code, and after none of these.
      if (isFinalClose(code) && admission.returnsAfter({ code })) socket.reconnect();
      session.closed({ final: !socket.shouldReconnect, code });
    },
  });
  const state = useSyncExternalStore(session.subscribe, session.getSnapshot, session.getSnapshot);
  const messages = useMemo(() => visibleMessages(state), [state]);
  const { send, retry, discard, submitToolResult, addHistory } = session;
  const functions = useMemo(
    () => ({ send, retry, discard, submitToolResult, addHistory, reconnect: () => agent.reconnect() }),
    [send, retry, discard, submitToolResult, addHistory, agent],
  );
  return { state, messages, status: state.connection, answering: isAnswering(state), ...functions };
}

interface Live {
  id: string;
  session: ConversationSession;
  admission: Login;
  socketClass: WebSocketClass;
}

/** One session per conversation: another id begins anew in the same render. */
function useSession(id: string, options: UseConversationOptions): Live {
  const [live, setLive] = useState(() => createLive(id, options));
  if (live.id === id) return live;
  const next = createLive(id, options);
  setLive(next);
  return next;
}

function createLive(id: string, { WebSocket: base, token }: UseConversationOptions): Live {
  const session = new ConversationSession();
  const admission = new Login(token);
  return { id, session, admission, socketClass: resumingWebSocket(session.resumeFrom, base) };
}

/** The page's own protocol decides where no host says otherwise. */
function address(host: string | undefined): { host?: string; protocol?: "ws" | "wss" } {
  if (host !== undefined) return parseHost(host);
  return typeof window === "undefined" ? {} : parseHost(window.location.origin);
}

/** The socket of an event, if it belongs to this conversation: after a change of id the old one may speak once more. */
function socketOf(target: EventTarget | null, id: string): PartySocket | null {
  return target instanceof PartySocket && target.room === id ? target : null;
}
