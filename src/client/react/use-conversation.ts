/** A live conversation in a React component. The SDK's `useAgent` owns the socket. The session is the same as in `connectConversation`. */
import { useAgent } from "agents/react";
import { PartySocket } from "partysocket";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { Budget } from "../../protocol/budget.ts";
import type { WireError } from "../../protocol/move-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { type ClientTool, runClientTools } from "../client-tools.ts";
import type { ConnectOptions } from "../connection.ts";
import { createClient } from "../http.ts";
import {
  httpOrigin,
  isFinalClose,
  NO_BACKOFF,
  parseHost,
  ReconnectPolicy,
  resumingWebSocket,
  whenBack,
} from "../reconnect.ts";
import { type ConversationActions, ConversationSession } from "../session.ts";
import {
  type ConnectionStatus,
  isAnswering,
  isEnded,
  isLost,
  isStopped,
  isStopping,
  type LiveConversation,
  lastError,
  type OperationState,
  type PendingApproval,
  pendingApprovals,
  queuedTurns,
  runningOperations,
  type TranscriptMessage,
  type TurnState,
  visibleMessages,
} from "../state.ts";
import { announceAnswer } from "./answers.ts";

export interface UseConversationOptions extends Pick<ConnectOptions, "WebSocket" | "token"> {
  /** `https://example.com`, or a bare host; the host of the page by default. */
  host?: string;
  /** Runs the tools of this page, by name: each call in one tab of several. The functions may change between renders. */
  clientTools?: Readonly<Record<string, ClientTool>>;
}

export interface UseConversationResult extends ConversationActions {
  state: LiveConversation;
  /** Recorded, streaming and pending messages. */
  messages: TranscriptMessage[];
  status: ConnectionStatus;
  /** `true` while a turn is active: show a Stop button, which calls `stop`. */
  answering: boolean;
  /** `true` while this client stops every active turn and the conversation has not confirmed it: disable the Stop button. */
  stopping: boolean;
  /** `true` while the conversation is stopped and answers no message: show a button that calls `resume`. */
  stopped: boolean;
  /** The turns that wait for those before them, in order: the place of a turn is its place here. */
  queue: TurnState[];
  /** The operations of active turns that have no result, each with its progress, its attempt, and until when it waits. */
  operations: OperationState[];
  /** The calls that wait for a person: show each with its input, and answer with `resolveApproval`. */
  approvals: PendingApproval[];
  /** The remaining limits of the conversation and its agent, if any. A turn has `spent`. */
  budgetLeft?: Budget;
  /** The error of the newest message: it was rejected, or its turn failed. Absent after a stop, and while a turn answers. */
  error?: WireError;
  /** `true` once the conversation has ended for good: it can be read, and takes no more messages. */
  ended: boolean;
}

/**
 * Connects to the conversation with this id and renders again when it changes. The actions keep their identity between
 * renders.
 *
 * @example
 * function Chat({ id }: { id: string }) {
 *   const { messages, send, answering, stop, stopping } = useConversation(id);
 *   return (
 *     <>
 *       {messages.map(({ key, role, content }) => <p key={key}>{role}: {textOf(content)}</p>)}
 *       <button onClick={() => send("Hello")}>Say hello</button>
 *       {answering && <button disabled={stopping} onClick={() => stop()}>Stop</button>}
 *     </>
 *   );
 * }
 */
export function useConversation(id: string, options: UseConversationOptions = {}): UseConversationResult {
  const { session, policy, socketClass } = useLive(id, options);
  const { token } = options;
  useEffect(() => {
    policy.token = token;
  }, [policy, token]);
  useEffect(() => policy.close, [policy]);
  const agent = useAgent({
    agent: "conversation",
    name: id,
    ...address(options.host),
    ...NO_BACKOFF,
    protocols: policy.nextAttempt,
    WebSocket: socketClass,
    maxEnqueuedMessages: 0,
    onOpen: ({ target }) => {
      const socket = socketOf(target, id);
      if (socket === null) return;
      policy.opened();
      session.opened(socket);
    },
    onMessage: ({ target, data }) => {
      if (socketOf(target, id) !== null && session.received(data)) policy.accepted();
    },
    onClose: ({ target, code }) => {
      const socket = socketOf(target, id);
      if (socket === null) return;
      // After every other code, the SDK reconnects.
      if (isFinalClose(code) && policy.shouldReconnect({ code })) socket.reconnect();
      session.closed({ final: !socket.shouldReconnect, code });
    },
  });
  const state = useSyncExternalStore(session.subscribe, session.getSnapshot, session.getSnapshot);
  const messages = useMemo(() => visibleMessages(state), [state]);
  const queue = useMemo(() => queuedTurns(state), [state]);
  const operations = useMemo(() => runningOperations(state), [state]);
  const approvals = useMemo(() => pendingApprovals(state), [state]);
  const actions = useMemo((): ConversationActions => {
    const { send, retry, retryTurn, discard, submitToolResult, claimTool, addHistory } = session;
    const { stop, cancelTurn, cancel, resume } = session;
    const reconnect = () => {
      policy.atOnce();
      agent.reconnect();
    };
    const overHttp = () => createClient({ baseUrl: httpOrigin(agent), ...defined({ token: policy.token }) });
    const update: ConversationActions["update"] = (changes) => overHttp().conversations.update(id, changes);
    const complete: ConversationActions["complete"] = (options) =>
      overHttp().conversations.complete(id, options);
    const resolveApproval: ConversationActions["resolveApproval"] = async (operationId, answer) => {
      const resolved = await overHttp().operations.resolveApproval(id, operationId, answer);
      announceAnswer(operationId);
      return resolved;
    };
    const regenerate: ConversationActions["regenerate"] = (turnId) => overHttp().turns.regenerate(id, turnId);
    const edit: ConversationActions["edit"] = (turnId, content) =>
      overHttp().turns.edit(id, turnId, { content });
    const stops = { stop, cancelTurn, cancel, resume, complete };
    const results = { submitToolResult, claimTool, resolveApproval };
    return {
      send,
      retry,
      retryTurn,
      regenerate,
      edit,
      discard,
      ...results,
      addHistory,
      update,
      reconnect,
      ...stops,
    };
  }, [id, session, policy, agent]);
  const tools = useRef(options.clientTools);
  tools.current = options.clientTools;
  const names = Object.keys(options.clientTools ?? {})
    .sort()
    .join(" ");
  useEffect(() => {
    const run = (name: string): [string, ClientTool] => [
      name,
      (input, call) => tools.current?.[name]?.(input, call),
    ];
    if (names !== "") return runClientTools(session, Object.fromEntries(names.split(" ").map(run)));
    return undefined;
  }, [session, names]);
  useEffect(
    () =>
      whenBack(() => {
        if (isLost(session.getSnapshot())) actions.reconnect();
      }),
    [session, actions],
  );
  return {
    state,
    messages,
    queue,
    operations,
    approvals,
    ...defined({ budgetLeft: state.conversation?.budgetLeft, error: lastError(state) }),
    status: state.connection,
    answering: isAnswering(state),
    stopping: isStopping(state),
    stopped: isStopped(state),
    ended: isEnded(state),
    ...actions,
  };
}

/** Keeps one session per conversation. A new id gets a new session in the same render. */
function useLive(id: string, options: UseConversationOptions) {
  const [live, setLive] = useState(() => createLive(id, options));
  if (live.id === id) return live;
  const next = createLive(id, options);
  setLive(next);
  return next;
}

function createLive(id: string, { WebSocket: Base, token }: UseConversationOptions) {
  const session = new ConversationSession();
  const policy = new ReconnectPolicy(token);
  return { id, session, policy, socketClass: resumingWebSocket(session.resumeFrom, Base) };
}

/** Without a host, the protocol of the page decides between `ws` and `wss`. */
function address(host: string | undefined): { host?: string; protocol?: "ws" | "wss" } {
  if (host !== undefined) return parseHost(host);
  return typeof window === "undefined" ? {} : parseHost(window.location.origin);
}

/** Returns the socket of an event of this conversation. After a change of id, the old socket may still send one. */
function socketOf(target: EventTarget | null, id: string): PartySocket | null {
  return target instanceof PartySocket && target.room === id ? target : null;
}
