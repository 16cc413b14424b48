/**
 * The frames of the wire protocol for WebSocket, server-sent events and RPC readers. Servers and clients share this
 * file.
 *
 * WIRE-1  `seq` is the number of a journal entry. Frames with a `seq` ascend strictly and may skip numbers.
 * WIRE-2  Text deltas carry no `seq`; `offset` counts UTF-16 units from the beginning of the message.
 * WIRE-3  Ids are at the frame's top level, never in `data`.
 */
import type { Content } from "../shared/content.ts";
import type { JsonValue } from "../shared/json.ts";
import type { AskView } from "./agent-call.ts";
import type { AnsweredBy } from "./approval.ts";
import type { Budget, BudgetExcess } from "./budget.ts";
import type { Caller, TurnIssues } from "./caller-schemas.ts";
import type { ConversationView, TurnOrder } from "./conversation-schemas.ts";
import type { AgentCallView, ApprovalView, WireError } from "./move-schemas.ts";
import type { Participant } from "./participants.ts";
import type { TaskView } from "./task-summary.ts";
import type { SpendingView } from "./usage-schemas.ts";
import type { Snapshot } from "./views.ts";
import type { MergeNote } from "./workspace.ts";

export const PROTOCOL_VERSION = 1;

/** The WebSocket subprotocol of this version. */
export const SUBPROTOCOL = "dramatis.v1";
/** The prefix of the second subprotocol, which carries a token. */
export const BEARER_PREFIX = "bearer.";

/** The header that names the turn of a UI message stream. */
export const TURN_HEADER = "x-dramatis-turn";

/** The close code that tells a client to reconnect and to continue after its last `seq`. */
export const CONTINUE_LATER_CLOSE = 1013;
/** The close code for a principal without access, or with revoked access. */
export const UNAUTHORIZED_CLOSE = 4401;
/** The close code for a conversation that does not exist for this principal. */
export const NOT_FOUND_CLOSE = 4404;
/** The close code for a connection over its limits. */
export const FLOOD_CLOSE = 4429;

interface FrameData {
  snapshot: Snapshot;
  "conversation.updated": {
    title?: string | null;
    status?: ConversationView["status"];
    gate?: "idle" | "cancelled";
    turns?: TurnOrder;
    /** `false`: messages are recorded, and no model answers them. */
    orchestration?: boolean;
    /** The smallest limits of the conversation and of its agent. `null` if there are no limits. */
    budget?: Budget | null;
    budgetLeft?: Budget;
    /** A person merged the branch of the conversation. */
    merged?: MergeNote;
  };
  "participant.joined": { participant: Participant };
  "participant.left": { participant: Participant };
  /** `caller` is the agent or the run that started the turn. Absent if a user started it. */
  "turn.started": {
    clientId?: string;
    agentId: string;
    caller?: Caller;
    /** The turn that it answers again, or the turn with the message that it replaces. */
    regenerates?: string;
    edits?: string;
  };
  /** The turn waits for earlier turns. `position` is 1 for the next turn. */
  "turn.queued": { position: number };
  /**
   * The turn waits only for a person's approval, or for results of client tools, deferred operations or background
   * operations.
   */
  "turn.waiting": { reason: "approval" | "client-tools" | "operations" };
  /** `spent` is the turn's usage. `budgetLeft` is the remaining budget of the conversation, if it has a budget. */
  "turn.completed": {
    issues?: TurnIssues;
    silent?: true;
    output?: JsonValue;
    spent?: SpendingView;
    budgetLeft?: Budget;
  };
  "turn.failed": { error: WireError; spent?: SpendingView; budgetLeft?: Budget };
  "turn.finalized": { memoryExtractionStatus: "completed" | "failed" | "skipped" };
  /** `agentId` is the agent that wrote it; absent if a user did. Without `content` and `seq` it answers the sender of a message that was recorded before. */
  "message.user": {
    clientId?: string;
    content?: Content;
    agentId?: string;
    runId?: string;
    /** As in `turn.started`. */
    regenerates?: string;
    edits?: string;
  };
  /** The next model call did not fit a budget, and was not made: the turn fails. */
  "budget.exceeded": BudgetExcess;
  "message.started": { agentId: string };
  "message.delta": { offset: number; text: string };
  "message.reset": { reason: string };
  /**
   * `interim`: text beside tool calls. `stopped`: the turn ended while the message streamed, and the content is the shown text. `notice`: the
   * text is the platform's.
   */
  "message.completed": { agentId: string; content: string; interim?: true; stopped?: true; notice?: true };
  "tool.requested": {
    name: string;
    input: unknown;
    async: boolean;
    client?: true;
    agent?: AgentCallView;
    /** As in `OperationView`. */
    runId?: string;
  };
  "tool.progress": { progress: unknown };
  /** Answers `tool.claim`: whether this connection may run the call of a client's tool. */
  "tool.claimed": { granted: boolean };
  /**
   * The call waits for a person until `expiresAt` (ISO 8601 UTC). After approval, `target` runs with this input.
   * Without `target`, the tool runs.
   */
  "approval.requested": AnsweredBy & {
    name: string;
    input: unknown;
    /** As in `OperationView`. */
    modelInput?: unknown;
    target?: string;
    expiresAt: string;
    /** The request of an agent that the operation called, or of one below it: answer it by its own `operationId`. */
    of?: AskView;
  };
  /** The wait is over. Only a call that was `approved` runs. */
  "approval.resolved": Required<Pick<ApprovalView, "outcome">> &
    Pick<ApprovalView, "by" | "reason"> & {
      /** As in `approval.requested`. */
      of?: AskView;
    };
  /** The run or the agent of the call, or work below it, waits for a person. */
  "work.held": { runId?: string };
  /** That wait is over. */
  "work.released": Record<string, never>;
  /** The result comes later, by a handle: until `expiresAt` (ISO 8601 UTC), when the call fails. */
  "tool.deferred": { expiresAt: string };
  "tool.completed": { result: unknown; agent?: AgentCallView; runId?: string; task?: TaskView };
  "tool.failed": { error: WireError; agent?: AgentCallView; runId?: string; task?: TaskView };
  "tool.cancelled": { error: WireError };
  /** The content of the message or the operation was erased. Clients remove it. */
  "entry.erased": Record<string, never>;
  error: { code: string; message: string; retriable?: boolean; ref?: string };
  pong: Record<string, never>;
  /** Asks a client that promised acknowledgements to return this text with an `ack`. */
  mark: { mark: string };
}

export type FrameType = keyof FrameData;

export type Frame = {
  [Type in FrameType]: {
    v: 1;
    type: Type;
    /** Present on durable facts only. */
    seq?: number;
    turnId?: string;
    messageId?: string;
    operationId?: string;
    /** ISO 8601 UTC. */
    time: string;
    data: FrameData[Type];
  };
}[FrameType];

/** Reports whether a frame is the last of its turn's stream. */
export function endsTurn({ type }: Frame): boolean {
  return type === "turn.completed" || type === "turn.failed";
}

/**
 * Returns the frame in a message's text, or `null` for anything else, such as the SDK's own messages. Checks the envelope of
 * the frame and trusts its content. A frame may have an unknown type of a newer server; the reducer ignores it.
 */
export function parseFrame(message: unknown): Frame | null {
  const value = parseObject(message);
  const { v, type, time, data, seq } = value;
  const isFrame =
    v === PROTOCOL_VERSION &&
    typeof type === "string" &&
    typeof time === "string" &&
    typeof data === "object" &&
    data !== null &&
    (seq === undefined || typeof seq === "number");
  // SAFETY: the envelope was checked; the content is the server's.
  return isFrame ? (value as unknown as Frame) : null;
}

/** Reports whether a message's text is a frame of another version. */
export function isOfOtherVersion(message: unknown): boolean {
  const { v, type } = parseObject(message);
  return typeof v === "number" && v !== PROTOCOL_VERSION && typeof type === "string";
}

/** The object in a JSON text; an empty one for anything else. */
function parseObject(text: unknown): Partial<Record<string, unknown>> {
  try {
    const value: unknown = typeof text === "string" ? JSON.parse(text) : null;
    // SAFETY: widens an object to optional unknown members.
    return typeof value === "object" && value !== null ? (value as Partial<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
