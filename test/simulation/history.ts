/** The history of a simulation, for the checker and for people. */

import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import type { UsageTotals } from "../../src/model/usage.ts";
import type { ToolResult } from "../../src/protocol/executor-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { ToolOutcome } from "../../src/protocol/requests.ts";
import type { JournalEntryView, MessageView, TurnView } from "../../src/protocol/views.ts";
import type { Content } from "../../src/shared/content.ts";
import type { Json } from "../../src/shared/json.ts";
import type { Said } from "./check-requests.ts";
import type { Fault, ModelFailure, Plan, ToolName, UnfitAnswer } from "./plan.ts";

/** A user's message. */
export interface SentMessage {
  conversation: number;
  client: number;
  user: string;
  /** Prefix of its content. */
  tag: string;
  content: Content;
  sentAt: number;
  /** Absent until the sender got an acknowledgement. */
  acknowledgedAt?: number;
  /** `true` if the response to the request acknowledged it, not a frame. */
  isAnswered: boolean;
  /** Turn in the acknowledgement, if it had one. */
  turnId?: string;
}

export interface ModelCallRecord {
  conversation: number;
  tag: string;
  round: number;
  /** Number of requests for this round so far, from 1. */
  call: number;
  /** When it was made: milliseconds since the run began, whatever the wall clock shows. */
  at: number;
  failure?: ModelFailure;
  /** Text of the uninterrupted reply. */
  text: string;
  /** Id of the request in the response. */
  requestId: string;
  /** Index of the model in its chain. */
  profile: number;
  /** Reported input tokens: a power of two, distinct among the requests of a message, or none. */
  tokens: number;
  /** `true` if the caller received the token count. */
  isCounted: boolean;
  /** The messages before the turn's own, without instructions. */
  before: Said[];
  /** The messages after the turn's own, without withdrawn answers. */
  moves: Said[];
  /** Images of the message in the request, and those that it reported as missing. */
  images: number;
  missing: number;
  /** `true` if the request required structured output. */
  wantsData: boolean;
  /** The unfit answer instead of data. */
  unfit?: UnfitAnswer;
}

/** A result that a client gave for its own tool. */
export interface Submission {
  conversation: number;
  client: number;
  operationId: string;
  outcome: ToolOutcome;
  /** Milliseconds since the epoch. */
  at: number;
  /** The response: accepted, or rejected with this code. Absent without a response. */
  answer?: "taken" | (string & {});
}

export interface ToolRun {
  conversation: number;
  /** Key of the planned call. */
  call: string;
  tool: ToolName;
  operationId: string;
  /** Result; absent if it failed or did not end. */
  answer?: Json;
}

/** One connection of a client, as the client saw it. */
export interface ConnectionRecord {
  conversation: number;
  client: number;
  from: number | null;
  frames: Frame[];
}

export interface ClientOutcome {
  client: number;
  /** State after a last connection that resumed; absent if the client received nothing. */
  resumed?: LiveConversation;
}

/** A conversation at rest. */
export interface Outcome {
  lives: number;
  /** Prefixes of the messages whose turns stayed active until somebody called again. */
  abandoned: string[];
  /** State from the database at rest. */
  stored: ConversationState;
  /** State of the living actor; absent if none lives. */
  memory?: ConversationState;
  /** Timers of the living actor. */
  timers: number;
  /** `true` if the wake-up is still armed. */
  armed: boolean;
  turns: TurnView[];
  messages: MessageView[];
  journal: JournalEntryView[];
  toolState: Record<string, Json>;
  /** Last usage that the directory received. */
  published: UsageTotals | undefined;
  clients: ClientOutcome[];
  /** State of a client that replays all frames. */
  replayed: LiveConversation;
  /** State of a client that starts with a snapshot. */
  snapshot: LiveConversation;
}

export interface History {
  plan: Plan;
  timeline: string[];
  /** All faults that took effect. */
  fired: readonly Fault[];
  sent: SentMessage[];
  modelCalls: ModelCallRecord[];
  toolRuns: ToolRun[];
  submissions: Submission[];
  /** Results reported by the executor, by operation. */
  reported: Map<string, ToolResult[]>;
  connections: ConnectionRecord[];
  /** Incidents that no run should have. */
  incidents: string[];
  outcomes: Outcome[];
  /** Duration in simulated milliseconds. */
  elapsed: number;
}
