/**
 * The state of one conversation in a client: an immutable value, and views of it for user interfaces.
 *
 * VIEW-1  Objects that a frame does not change keep their identity, so a rendered item updates only when it changes.
 * VIEW-2  The items of a turn keep the order in which they first appeared. A completed message replaces its partial message in place.
 */
import type { OutputSpec, ToolSpec } from "../model/context.ts";
import type { Budget } from "../protocol/budget.ts";
import type { ConversationView, MessageView, TurnSummary } from "../protocol/conversation-schemas.ts";
import type { WireError } from "../protocol/move-schemas.ts";
import type { StopOptions, ToolChoice, ToolSubmission } from "../protocol/requests.ts";
import type { OperationView } from "../protocol/views.ts";
import type { Content } from "../shared/content.ts";
import { defined } from "../shared/defined.ts";
import { newestVersions } from "./newest-versions.ts";

/**
 * `reconnecting`: lost, another attempt follows. `closed`: closed for good. `unauthorized`: closed for good, because
 * the server rejected the token.
 */
export type ConnectionStatus = "connecting" | "open" | "reconnecting" | "closed" | "unauthorized";

export interface OperationState extends OperationView {
  /** Latest progress report of a running tool. */
  progress?: unknown;
}

/** A tool call that this client must run. */
export interface PendingCall extends Omit<OperationState, "id"> {
  /** The id for `submitToolResult`. */
  operationId: string;
}

/** A failed attempt of a turn that is retried. */
export interface RetryNotice {
  code: string;
  message: string;
  /** ISO 8601 UTC. */
  time: string;
}

/** An item of a turn. A `thought` is text of a reply with tool calls. It is not part of the transcript. */
export type TurnItem =
  | { type: "message"; id: string; message: MessageView }
  | { type: "partial"; id: string; text: string; agentId: string; startedAt: string; restarted: boolean }
  | { type: "thought"; id: string; text: string }
  | { type: "tool"; id: string; operation: OperationState };

export interface TurnState extends TurnSummary {
  items: readonly TurnItem[];
  /** All failed attempts that were retried. */
  retries: readonly RetryNotice[];
  /** `true` from a failed attempt until its retry makes progress. */
  retrying: boolean;
}

/** Options that are sent with a message. */
export interface MessageOptions {
  /** Id of the message to which this message replies. */
  replyToMessageId?: string;
  /** Id of the agent that the message is for, if the conversation has several. */
  to?: string;
  /** Requires an answer in JSON of this schema. The turn then has the data as `output`. */
  output?: OutputSpec;
  /** Tools that this client runs. The turn waits for the results of the calls in `pendingCalls`. */
  tools?: ToolSpec[];
  /** Use of tools in the model's first reply; `auto` by default. */
  toolChoice?: ToolChoice;
  /** Limits of this turn. */
  budget?: Budget;
  /** The content has text from elsewhere: a memory that comes from it is tainted. */
  untrusted?: true;
}

/** A message that this client has sent and the conversation has not recorded. */
export interface PendingMessage extends MessageOptions {
  clientId: string;
  content: Content;
  /** ISO 8601 UTC. */
  createdAt: string;
  /** `rejected`: the conversation rejected the message with `error`. */
  status: "sending" | "rejected";
  error?: WireError;
}

/** A tool result that this client has sent and the conversation has not recorded. */
export interface PendingResult extends ToolSubmission {
  /** `rejected`: the conversation rejected the result with `refusal`. */
  status: "sending" | "rejected";
  refusal?: WireError;
}

/** A stop of a turn or of the conversation, or a resume, that this client has asked for and that has not happened yet. */
export type PendingStop = (
  | { type: "turn.cancel"; turnId: string }
  | { type: "conversation.cancel" }
  | { type: "conversation.resume" }
) &
  StopOptions;

/** A call that waits for a person, with the agent that asks. `approval` has the rule that names who may answer. */
export interface PendingApproval extends OperationState {
  agentId: string;
}

/** The state of a conversation in a client. */
export interface LiveConversation {
  /** Number of the last applied durable frame, or `null`. */
  seq: number | null;
  connection: ConnectionStatus;
  /** `null` until the first snapshot. */
  conversation: ConversationView | null;
  /** Loaded part of the transcript, oldest first. */
  messages: readonly MessageView[];
  /** Turns of `messages` and all active turns, oldest first. */
  turns: readonly TurnState[];
  pending: readonly PendingMessage[];
  /** Pending tool results. */
  results?: readonly PendingResult[];
  /** Stops and resumes that have not taken effect yet. */
  stops?: readonly PendingStop[];
  /** Last error that belongs to no turn and to no pending message or result. */
  error: WireError | null;
}

export const initialState: LiveConversation = {
  seq: null,
  connection: "connecting",
  conversation: null,
  messages: [],
  turns: [],
  pending: [],
  error: null,
};

/** A message for display, in any state. */
export interface TranscriptMessage {
  /** Stable from sending to recording, and from streaming to completion. */
  key: string;
  role: "user" | "agent";
  status: "sending" | "rejected" | "sent" | "streaming";
  content: Content;
  /** ISO 8601 UTC. */
  createdAt: string;
  id?: string;
  turnId?: string;
  agentId?: string;
  /** The turn ended while the message streamed. `content` is the shown part. */
  stopped?: true;
  /** The text is a notice of the platform, because the model gave no text in the turn's last call. */
  notice?: true;
  error?: WireError;
}

/**
 * Returns the recorded messages without replaced turns, then the streaming messages, then the pending messages.
 *
 * @example
 * for (const { key, role, content } of visibleMessages(conversation.getSnapshot())) show(key, role, textOf(content));
 */
export function visibleMessages(state: LiveConversation): TranscriptMessage[] {
  return [
    ...newestVersions(state.messages).map(recordedMessage),
    ...state.turns.flatMap(streamingMessages),
    ...state.pending.map(pendingMessage),
  ];
}

/** Reports whether there is no connection, and attempts to connect follow. */
export function isLost({ connection }: LiveConversation): boolean {
  return connection === "connecting" || connection === "reconnecting";
}

/** Reports whether a turn is active. A turn that only waits for a person, for background work or for deferred results does not count. */
export function isAnswering(state: LiveConversation): boolean {
  return state.turns.some(isTurnAnswering);
}

/** Reports whether a turn is active and does not only wait for a person, for work in the background or for deferred results. */
export function isTurnAnswering({ status, phase }: TurnState): boolean {
  return status === "active" && phase !== "waiting";
}

/**
 * Reports whether this client stops turns and the conversation has not confirmed it yet: the turn with this id, or each
 * turn that answers if there is no id. A Stop button waits while it is `true`.
 */
export function isStopping({ turns, stops = [] }: LiveConversation, turnId?: string): boolean {
  const isMeant = (turn: TurnState) =>
    turnId === undefined ? isTurnAnswering(turn) : turn.status === "active" && turn.id === turnId;
  const active = turns.filter(isMeant);
  const isAsked = (id: string) =>
    stops.some((stop) => stop.type === "conversation.cancel" || ("turnId" in stop && stop.turnId === id));
  return active.length > 0 && active.every(({ id }) => isAsked(id));
}

/** Reports whether the conversation is stopped: messages are recorded and not answered until it resumes. */
export function isStopped({ conversation }: LiveConversation): boolean {
  return conversation?.gate === "cancelled";
}

/** Reports whether the conversation has ended for good: it can be read, and takes no more messages. */
export function isEnded({ conversation }: LiveConversation): boolean {
  return conversation?.status === "completed" || conversation?.status === "failed";
}

/**
 * Returns the error of the newest message: the message was rejected, or its turn failed. A turn that a person stopped has no error. Without
 * messages, returns the last error of the conversation.
 */
export function lastError({ pending, turns, error }: LiveConversation): WireError | undefined {
  const message = pending.at(-1);
  if (message !== undefined) return message.error;
  const turn = turns.at(-1);
  if (turn === undefined) return error ?? undefined;
  return turn.error?.code === "CANCELLED" ? undefined : (turn.error ?? undefined);
}

/** Returns the turns that wait for earlier turns (`phase: "queued"`), in order. */
export function queuedTurns({ turns }: LiveConversation): TurnState[] {
  return turns.filter(({ status, phase }) => status === "active" && phase === "queued");
}

/** Returns the operations of active turns that have no result: running operations, waits for a person, and background work. */
export function runningOperations({ turns }: LiveConversation): OperationState[] {
  return turns
    .filter(({ status }) => status === "active")
    .flatMap(({ items }) => items.flatMap((item) => (item.type === "tool" ? [item.operation] : [])))
    .filter(({ state }) => state === "running" || state === "awaiting_approval");
}

/**
 * Returns the calls of active turns that wait for a person. Show their `input` and `target`, and answer with `resolveApproval`. Includes
 * calls of called agents at any depth. Their `turnId` is the turn in this conversation.
 */
export function pendingApprovals(state: LiveConversation): PendingApproval[] {
  const agentOf = new Map(state.turns.map(({ id, agentId }) => [id, agentId]));
  return runningOperations(state).flatMap((operation) => [
    ...(operation.state === "awaiting_approval"
      ? [{ ...operation, agentId: agentOf.get(operation.turnId) ?? "" }]
      : []),
    ...callsAsking(operation),
  ]);
}

/** Returns the calls that wait for a person in the conversation of the agent that an operation calls, or below it, each with its agent. */
export function callsAsking({ turnId, agent }: OperationState): PendingApproval[] {
  return (agent?.asks ?? []).map((asked) => {
    const {
      operationId: id,
      conversationId: _,
      input,
      expiresAt,
      rule,
      requester,
      policy,
      elicitation,
      ...ask
    } = asked;
    const approval = { expiresAt, ...defined({ rule, requester, policy, elicitation }) };
    return { id, turnId, ...ask, input, state: "awaiting_approval", approval };
  });
}

/** Returns the text of content, without its images and files. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

function recordedMessage({ clientId, ...message }: MessageView): TranscriptMessage {
  return { key: clientId ?? message.id, status: "sent", ...message };
}

function streamingMessages({ id: turnId, items }: TurnState): TranscriptMessage[] {
  return items.flatMap((item): TranscriptMessage[] => {
    if (item.type !== "partial") return [];
    const { id, text: content, agentId, startedAt: createdAt } = item;
    return [{ key: id, role: "agent", status: "streaming", content, createdAt, id, turnId, agentId }];
  });
}

function pendingMessage({ clientId, content, createdAt, status, error }: PendingMessage): TranscriptMessage {
  return { key: clientId, role: "user", status, content, createdAt, ...defined({ error }) };
}
