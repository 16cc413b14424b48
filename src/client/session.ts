/**
 * The live side of one conversation, without a socket of its own: it holds the state, sends messages until they are
 * recorded, and knows where a lost connection continues. Whoever owns the socket tells it what happens to it.
 *
 * SEND-1  A message keeps its client id and is sent again after each opening, in order, until it is recorded,
 *         rejected or discarded; the id makes the repetition harmless. So does a retry after a rejection: another copy
 *         of the message may have been recorded. Only an id that means another message is replaced. A result of
 *         a tool is sent again until its call is over or the result is refused.
 * SEND-2  A connection continues after the last durable frame that was applied.
 * SEND-3  A message that stays unrecorded on an open connection means the connection is dead: it is replaced.
 */

import type { OutputSpec, ToolSpec } from "../model/context.ts";
import { isOfOtherVersion, PROTOCOL_VERSION, parseFrame, UNAUTHORIZED_CLOSE } from "../protocol/frames.ts";
import type { ClientFrame, ToolChoice, ToolOutcome, ToolSubmission } from "../protocol/requests.ts";
import type { Content } from "../shared/content.ts";
import { defined } from "../shared/defined.ts";
import { addHistory, type HistoryPage } from "./history.ts";
import { addPending, dropPending } from "./pending.ts";
import { addResult } from "./results.ts";
import { initialState, type LiveConversation, type PendingMessage, type PendingResult } from "./state.ts";
import { applyFrame } from "./store.ts";

/** What the session needs of a socket. */
export interface FrameTransport {
  send(data: string): void;
  /** Replaces the connection by a new one. */
  reconnect(): void;
  /** Closes the connection for good. */
  close(): void;
}

export interface SendOptions {
  /** The client id; absent = a new one. Sending the same id again is sending the same message. */
  id?: string;
  replyToMessageId?: string;
  /** The answer must be JSON of this schema; the turn then has its data as `output`. */
  output?: OutputSpec;
  /** Tools that this client runs: `pendingCalls` says when, and the turn waits for their results. */
  tools?: ToolSpec[];
  /** Of the model's first reply; `auto` when absent. */
  toolChoice?: ToolChoice;
}

export interface SessionOptions {
  /** How long an open connection may leave a message unrecorded, in milliseconds; 15 000 when absent. */
  acknowledgeWithin?: number;
  /** The time; the runtime's own when absent. */
  clock?: SessionClock;
}

/** What the session needs of a clock. */
interface SessionClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `task` once after so many milliseconds; returns what cancels it. */
  timer(milliseconds: number, task: () => void): () => void;
}

const runtimeClock: SessionClock = {
  now: () => Date.now(),
  timer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};

export class ConversationSession {
  readonly #acknowledgeWithin: number;
  readonly #clock: SessionClock;
  readonly #listeners = new Set<() => void>();
  #state: LiveConversation = initialState;
  #transport: FrameTransport | null = null;
  #stopWatching: (() => void) | null = null;

  constructor(options: SessionOptions = {}) {
    this.#acknowledgeWithin = options.acknowledgeWithin ?? 15_000;
    this.#clock = options.clock ?? runtimeClock;
  }

  /** The state now; the same object until it changes. */
  readonly getSnapshot = (): LiveConversation => this.#state;

  /** Calls the listener after each change; returns how to stop. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };

  /** Where the next connection continues; `null` before the first snapshot. */
  readonly resumeFrom = (): number | null => this.#state.seq;

  /** Sends a message as soon as it can; returns its client id. */
  readonly send = (content: Content, { id, ...options }: SendOptions = {}): string => {
    const clientId = id ?? crypto.randomUUID();
    if (this.#state.messages.some((message) => message.clientId === clientId)) return clientId;
    const message = {
      clientId,
      content,
      createdAt: new Date(this.#clock.now()).toISOString(),
      ...options,
    };
    this.#update(addPending(dropPending(this.#state, clientId), message));
    this.#transmit(message);
    this.#watchAcknowledgement();
    return clientId;
  };

  /** Sends a rejected message once more; returns its client id (SEND-1). Unknown ids answer `null`. */
  readonly retry = (clientId: string): string | null => {
    const message = this.#state.pending.find((pending) => pending.clientId === clientId);
    if (message?.status !== "rejected") return null;
    const again = this.send(message.content, {
      ...(message.error?.code === "IDEMPOTENCY_CONFLICT" ? {} : { id: clientId }),
      ...optionsOf(message),
    });
    if (again !== clientId) this.discard(clientId);
    return again;
  };

  /** Forgets a message that was not recorded; it is not sent again. */
  readonly discard = (clientId: string): void => this.#update(dropPending(this.#state, clientId));

  /** Gives the result of a tool that this client runs, as soon as it can. One of a call that is over goes nowhere. */
  readonly submitToolResult = (operationId: string, outcome: ToolOutcome): void => {
    const result = { operationId, ...outcome };
    this.#update(addResult(this.#state, result));
    if (!this.#unrecordedResults().some((sending) => sending.operationId === operationId)) return;
    this.#transmitResult(result);
    this.#watchAcknowledgement();
  };

  /** Adds a page of older messages. */
  readonly addHistory = (page: HistoryPage): void => this.#update(addHistory(this.#state, page));

  /** The socket is open. */
  opened(transport: FrameTransport): void {
    this.#transport = transport;
    this.#update({ ...this.#state, connection: "open" });
    for (const message of this.#unrecorded()) this.#transmit(message);
    for (const result of this.#unrecordedResults()) this.#transmitResult(result);
    this.#watchAcknowledgement();
  }

  /**
   * The socket has received something; answers whether it was a frame. One of another version ends the connection with
   * an error; what is no frame at all is left alone.
   */
  received(data: unknown): boolean {
    const frame = parseFrame(data);
    if (frame === null) {
      if (isOfOtherVersion(data)) this.#giveUp();
      return false;
    }
    const before = this.#unacknowledged;
    this.#update(applyFrame(this.#state, frame));
    if (this.#unacknowledged !== before) this.#watchAcknowledgement();
    return true;
  }

  /** The socket is closed, for good or until the next attempt. */
  closed({ final, code }: { final: boolean; code?: number }): void {
    this.#transport = null;
    this.#stopWatch();
    const end = code === UNAUTHORIZED_CLOSE ? "unauthorized" : "closed";
    const connection = final ? end : this.#state.seq === null ? "connecting" : "reconnecting";
    if (connection !== this.#state.connection) this.#update({ ...this.#state, connection });
  }

  #giveUp(): void {
    const message = `The server speaks another version of the protocol than this client (${PROTOCOL_VERSION}). Update the client.`;
    this.#update({ ...this.#state, error: { code: "UNSUPPORTED", message, retriable: false } });
    this.#transport?.close();
  }

  #unrecorded(): PendingMessage[] {
    return this.#state.pending.filter(({ status }) => status === "sending");
  }

  #unrecordedResults(): PendingResult[] {
    return (this.#state.results ?? []).filter(({ status }) => status === "sending");
  }

  get #unacknowledged(): number {
    return this.#unrecorded().length + this.#unrecordedResults().length;
  }

  #transmit(message: Omit<PendingMessage, "status">): void {
    const { clientId: id, content } = message;
    this.#transmitFrame({ v: PROTOCOL_VERSION, type: "turn.start", id, content, ...optionsOf(message) });
  }

  #transmitResult({ operationId, result, error }: ToolSubmission): void {
    const outcome = error === undefined ? { result: result ?? null } : { error };
    this.#transmitFrame({ v: PROTOCOL_VERSION, type: "tool.result", operationId, ...outcome });
  }

  #transmitFrame(frame: ClientFrame): void {
    this.#transport?.send(JSON.stringify(frame));
  }

  #watchAcknowledgement(): void {
    this.#stopWatch();
    if (this.#transport === null || this.#unacknowledged === 0) return;
    this.#stopWatching = this.#clock.timer(this.#acknowledgeWithin, () => this.#transport?.reconnect());
  }

  #stopWatch(): void {
    this.#stopWatching?.();
    this.#stopWatching = null;
  }

  #update(state: LiveConversation): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

/** What a message was sent with. */
function optionsOf({
  replyToMessageId,
  output,
  tools,
  toolChoice,
}: Omit<PendingMessage, "status">): SendOptions {
  return {
    ...defined({ replyToMessageId, output, tools, toolChoice }),
  };
}
