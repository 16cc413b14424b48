/**
 * The live side of one conversation: its state, its outbox and its place to resume. The owner of the socket reports what
 * happens to the socket.
 *
 * SEND-1  A message keeps its client id and is sent again after each opening, in order, until it is recorded, rejected or
 *         discarded. The id makes a repetition harmless. A retry after a rejection keeps the id too, because another copy
 *         may have been recorded; only an id that belongs to another message is replaced. A tool result is sent again
 *         until its call is over or the result is rejected.
 * SEND-2  A connection resumes after the last applied durable frame.
 * SEND-3  An open connection that leaves a message unrecorded for too long is dead and is replaced.
 * SEND-4  Each `mark` of the server is acknowledged once every frame before it is applied.
 * SEND-5  A stop or a resume is sent again after each opening, before messages, until it has happened or is refused.
 */
import type { Clock } from "../ports/clock.ts";
import type { UpdateConversation } from "../protocol/conversation-requests.ts";
import type { ConversationView, ResolvedApproval } from "../protocol/conversation-schemas.ts";
import {
  type Frame,
  isOfOtherVersion,
  PROTOCOL_VERSION,
  parseFrame,
  UNAUTHORIZED_CLOSE,
} from "../protocol/frames.ts";
import type {
  ApprovalAnswer,
  ClientFrame,
  StopOptions,
  ToolOutcome,
  ToolSubmission,
} from "../protocol/requests.ts";
import type { Content } from "../shared/content.ts";
import { defined } from "../shared/defined.ts";
import { runtimeClock } from "./clock.ts";
import { OTHER_VERSION } from "./errors.ts";
import { addHistory, type HistoryPage } from "./history.ts";
import { addPending, addResult, addStop, checkCallId, dropPending } from "./outbox.ts";
import { applyFrame } from "./reducer.ts";
import {
  initialState,
  isTurnAnswering,
  type LiveConversation,
  type MessageOptions,
  type PendingMessage,
  type PendingResult,
  type PendingStop,
} from "./state.ts";

/** The port to a socket. */
export interface FrameTransport {
  send(data: string): void;
  /** Closes the connection and opens another. */
  reconnect(): void;
  /** Closes the connection for good. */
  close(): void;
}

export interface SendOptions extends MessageOptions {
  /** Client id of the message. A new id by default. A repeated id denotes the same message. */
  id?: string;
}

/** Actions on a live conversation. */
export interface ConversationActions {
  /** Sends a message once the connection is open, and again after a lost connection. Returns its client id. */
  send(content: Content, options?: SendOptions): string;
  /** Sends a rejected message again. Returns its client id, or `null` if there is no such message. */
  retry(clientId: string): string | null;
  /**
   * Sends the message of a turn that failed or was stopped again, as a new message in a new turn. Returns its client id, or `null` if the
   * turn is not over, has an answer, or its message is not loaded. The options of a message are known only if this client has sent
   * it: give others, such as `output`.
   */
  retryTurn(turnId: string, options?: SendOptions): string | null;
  /**
   * Answers the message of a turn again, with a request over HTTP. No tool call runs again. The state follows with the next frame. Rejects
   * with a `DramatisClientError` if the request fails: `CONFLICT` if the turn or a later turn is active, or if the turn was replaced.
   */
  regenerate(turnId: string): Promise<{ turnId: string }>;
  /** Replaces the message of a turn, otherwise like `regenerate`. */
  edit(turnId: string, content: Content): Promise<{ turnId: string }>;
  /** Removes a message that is not recorded. It is not sent again. */
  discard(clientId: string): void;
  /**
   * Sends the result of a tool that this client runs, and again after a lost connection. Ignored if the call is over.
   * Throws a `DramatisClientError`: `INVALID_INPUT` without an id, `NOT_FOUND` for a call that no loaded turn has.
   */
  submitToolResult(operationId: string, outcome: ToolOutcome): void;
  /**
   * Claims a call of a client tool, so that one of several tabs runs it. Resolves to whether this client may run it: `false` if another
   * connection has claimed it or its result exists. A claim ends with its connection. Without a connection, it is sent once the connection
   * opens.
   */
  claimTool(operationId: string): Promise<boolean>;
  /**
   * Answers the request for approval of a tool's call, one of `pendingApprovals`, with a request over HTTP. The state follows with
   * the next frame. Rejects with a `DramatisClientError` if the request fails: `CONFLICT` if the call has another answer or ended.
   */
  resolveApproval(operationId: string, answer: ApprovalAnswer): Promise<ResolvedApproval>;
  /**
   * Stops every active turn, including turns that wait for other turns. Turns that only wait for a person, for background work or for
   * deferred results continue: stop them with `cancelTurn`. Unrecorded messages stay: discard them. A stop or a resume is sent once the
   * connection opens, and again after a lost connection, until it takes effect (`isStopping`).
   */
  stop(options?: StopOptions): void;
  /** Stops a turn, as `stop`. Ignored if the turn is over. */
  cancelTurn(turnId: string, options?: StopOptions): void;
  /** Stops the conversation with all its turns. Until it resumes, messages are recorded and not answered. */
  cancel(options?: StopOptions): void;
  /** Resumes a stopped conversation with its next message. */
  resume(options?: StopOptions): void;
  /**
   * Changes the order of turns that overlap, or the budget, with a request over HTTP. The state follows with the next frame. Rejects with a
   * `DramatisClientError` if the request fails; it is not repeated.
   */
  update(changes: UpdateConversation): Promise<ConversationView>;
  /**
   * Ends the conversation for good with a request over HTTP. Rejects with a `DramatisClientError` if the request fails; it is not
   * repeated. See `isEnded`.
   */
  complete(options?: StopOptions): Promise<ConversationView>;
  /** Adds a page of older messages. */
  addHistory(page: HistoryPage): void;
  /** Connects again at once, also after a final close. */
  reconnect(): void;
}

/** The actions that need more than the session's frames. */
type HttpActions = "reconnect" | "update" | "complete" | "resolveApproval" | "regenerate" | "edit";

export interface SessionOptions {
  /** Time for an open connection to record a message or a stop, in milliseconds; 15 000 by default. */
  acknowledgeWithin?: number;
  /** The runtime's clock by default. */
  clock?: Pick<Clock, "now" | "timer">;
}

export class ConversationSession implements Omit<ConversationActions, HttpActions> {
  readonly #acknowledgeWithin: number;
  readonly #clock: Pick<Clock, "now" | "timer">;
  readonly #listeners = new Set<() => void>();
  #state: LiveConversation = initialState;
  /** The options of the messages that this client has sent with some, by client id. */
  readonly #options = new Map<string, MessageOptions>();
  /** The claims that are not answered, by operation. */
  readonly #claims = new Map<string, PromiseWithResolvers<boolean>>();
  /** The calls that this client has claimed and not answered. A claim ends with its connection, so each is claimed again. */
  readonly #running = new Set<string>();
  #transport: FrameTransport | null = null;
  #stopWatching: (() => void) | null = null;

  constructor({ acknowledgeWithin = 15_000, clock = runtimeClock }: SessionOptions = {}) {
    this.#acknowledgeWithin = acknowledgeWithin;
    this.#clock = clock;
  }

  /** Returns the current state: the same object until it changes. */
  readonly getSnapshot = (): LiveConversation => this.#state;

  /** Calls the listener after each change. Returns a function that unsubscribes it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };

  /** Returns the place where the next connection resumes; `null` before the first snapshot. */
  readonly resumeFrom = (): number | null => this.#state.seq;

  readonly send = (content: Content, { id, ...options }: SendOptions = {}): string => {
    const clientId = id ?? crypto.randomUUID();
    if (this.#state.messages.some((message) => message.clientId === clientId)) return clientId;
    const createdAt = new Date(this.#clock.now()).toISOString();
    const message = { clientId, content, createdAt, ...options };
    if (Object.keys(options).length > 0) this.#options.set(clientId, options);
    this.#update(addPending(dropPending(this.#state, clientId), message));
    this.#transmit(message);
    this.#watchAcknowledgement();
    return clientId;
  };

  readonly retry = (clientId: string): string | null => {
    const message = this.#state.pending.find((pending) => pending.clientId === clientId);
    if (message?.status !== "rejected") return null;
    const isOtherMessage = message.error?.code === "IDEMPOTENCY_CONFLICT";
    const id = isOtherMessage ? {} : { id: clientId };
    const sentId = this.send(message.content, { ...id, ...optionsOf(message) });
    if (sentId !== clientId) this.discard(clientId);
    return sentId;
  };

  readonly retryTurn = (turnId: string, options?: SendOptions): string | null => {
    const turn = this.#state.turns.find(({ id }) => id === turnId);
    const message = this.#state.messages.find((one) => one.turnId === turnId && one.role === "user");
    if (turn?.status !== "failed" || message === undefined) return null;
    return this.send(message.content, { ...this.#options.get(message.clientId ?? ""), ...options });
  };

  readonly discard = (clientId: string): void => this.#update(dropPending(this.#state, clientId));

  readonly submitToolResult = (operationId: string, outcome: ToolOutcome): void => {
    checkCallId(this.#state, operationId);
    const result = { operationId, ...outcome };
    this.#running.delete(operationId);
    this.#update(addResult(this.#state, result));
    if (!this.#sendingResults().some((sending) => sending.operationId === operationId)) return;
    this.#transmitResult(result);
    this.#watchAcknowledgement();
  };

  readonly claimTool = (operationId: string): Promise<boolean> => {
    const claim = this.#claims.get(operationId) ?? Promise.withResolvers<boolean>();
    this.#claims.set(operationId, claim);
    this.#transmitClaim(operationId);
    return claim.promise;
  };

  readonly stop = (options?: StopOptions): void => {
    // Newest first: with the order `queued`, the end of a turn starts the next waiting turn.
    for (const turn of this.#state.turns.toReversed())
      if (isTurnAnswering(turn)) this.cancelTurn(turn.id, options);
  };

  readonly cancelTurn = (turnId: string, options?: StopOptions): void =>
    this.#stop({ type: "turn.cancel", turnId, ...options });

  readonly cancel = (options?: StopOptions): void => this.#stop({ type: "conversation.cancel", ...options });

  readonly resume = (options?: StopOptions): void => this.#stop({ type: "conversation.resume", ...options });

  readonly addHistory = (page: HistoryPage): void => this.#update(addHistory(this.#state, page));

  opened(transport: FrameTransport): void {
    this.#transport = transport;
    this.#update({ ...this.#state, connection: "open" });
    for (const stop of this.#state.stops ?? []) this.#transmitFrame({ v: PROTOCOL_VERSION, ...stop });
    for (const message of this.#sendingMessages()) this.#transmit(message);
    for (const result of this.#sendingResults()) this.#transmitResult(result);
    for (const operationId of new Set([...this.#running, ...this.#claims.keys()]))
      this.#transmitClaim(operationId);
    this.#watchAcknowledgement();
  }

  /**
   * Reports data from the socket, and returns whether it was a frame. A frame of another protocol version closes the
   * connection with an error. Other data is ignored.
   */
  received(data: unknown): boolean {
    const frame = parseFrame(data);
    if (frame === null) {
      if (isOfOtherVersion(data)) {
        const error = { code: "UNSUPPORTED", message: OTHER_VERSION, retriable: false };
        this.#update({ ...this.#state, error });
        this.#transport?.close();
      }
      return false;
    }
    if (this.#settleClaim(frame)) return true;
    if (frame.type === "mark")
      this.#transmitFrame({ v: PROTOCOL_VERSION, type: "ack", mark: frame.data.mark });
    const before = this.#sendingCount;
    this.#update(applyFrame(this.#state, frame));
    if (this.#sendingCount !== before) this.#watchAcknowledgement();
    return true;
  }

  #settleClaim(frame: Frame): boolean {
    const operationId = frame.type === "error" ? frame.data.ref : frame.operationId;
    const claim = this.#claims.get(operationId ?? "");
    const isRunning = this.#running.has(operationId ?? "");
    if (operationId === undefined || (claim === undefined && !isRunning)) return false;
    // A result that was sent before the claim may be refused under the same id.
    const isOfResult = this.#sendingResults().some((result) => result.operationId === operationId);
    if (frame.type !== "tool.claimed" && (frame.type !== "error" || isOfResult)) return false;
    const isGranted = frame.type === "tool.claimed" && frame.data.granted;
    // A call that runs here continues, even if another connection has claimed it since. A finished call is not claimed again.
    if (isGranted) this.#running.add(operationId);
    else if (frame.type === "error") this.#running.delete(operationId);
    this.#claims.delete(operationId);
    claim?.resolve(isGranted);
    return true;
  }

  /** Reports that the socket is closed; `final` if no attempt follows. */
  closed({ final, code }: { final: boolean; code?: number }): void {
    this.#transport = null;
    this.#stopWatch();
    if (final) {
      for (const { resolve } of this.#claims.values()) resolve(false);
      this.#claims.clear();
    }
    const end = code === UNAUTHORIZED_CLOSE ? "unauthorized" : "closed";
    const connection = final ? end : this.#state.seq === null ? "connecting" : "reconnecting";
    if (connection !== this.#state.connection) this.#update({ ...this.#state, connection });
  }

  #sendingMessages(): PendingMessage[] {
    return this.#state.pending.filter(({ status }) => status === "sending");
  }

  #sendingResults(): PendingResult[] {
    return (this.#state.results ?? []).filter(({ status }) => status === "sending");
  }

  /** Counts the items that an open connection must soon confirm. The stop of an unknown turn may have no effect to wait for. */
  get #sendingCount(): number {
    const { stops = [], turns } = this.#state;
    const isKnown = (stop: PendingStop) =>
      stop.type !== "turn.cancel" || turns.some(({ id }) => id === stop.turnId);
    return this.#sendingMessages().length + this.#sendingResults().length + stops.filter(isKnown).length;
  }

  #stop(stop: PendingStop): void {
    this.#update(addStop(this.#state, stop));
    if (!this.#state.stops?.includes(stop)) return;
    this.#transmitFrame({ v: PROTOCOL_VERSION, ...stop });
    this.#watchAcknowledgement();
  }

  #transmit(message: Omit<PendingMessage, "status">): void {
    const { clientId: id, content } = message;
    this.#transmitFrame({ v: PROTOCOL_VERSION, type: "turn.start", id, content, ...optionsOf(message) });
  }

  #transmitResult({ operationId, result, error }: ToolSubmission): void {
    const outcome = error === undefined ? { result: result ?? null } : { error };
    this.#transmitFrame({ v: PROTOCOL_VERSION, type: "tool.result", operationId, ...outcome });
  }

  #transmitClaim(operationId: string): void {
    this.#transmitFrame({ v: PROTOCOL_VERSION, type: "tool.claim", operationId });
  }

  #transmitFrame(frame: ClientFrame): void {
    this.#transport?.send(JSON.stringify(frame));
  }

  #watchAcknowledgement(): void {
    this.#stopWatch();
    if (this.#transport === null || this.#sendingCount === 0) return;
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

function optionsOf({
  replyToMessageId,
  to,
  output,
  tools,
  toolChoice,
  budget,
  untrusted,
}: MessageOptions): MessageOptions {
  return defined({ replyToMessageId, to, output, tools, toolChoice, budget, untrusted });
}
