/** The history of a simulation, for the checker and for people. */

import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import type { UsageTotals } from "../../src/model/usage.ts";
import type { ToolResult } from "../../src/protocol/executor-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { ToolOutcome } from "../../src/protocol/requests.ts";
import type { JournalEntryView, MessageView, TurnOrder, TurnView } from "../../src/protocol/views.ts";
import type { Content } from "../../src/shared/content.ts";
import type { Json } from "../../src/shared/json.ts";
import type { Said } from "./check-requests.ts";
import type { ActPlan, Fault, ModelFailure, Plan, SummaryPlan, ToolName, UnfitAnswer } from "./plan.ts";

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
  /** The batch of envelopes that brought it: the key of its first message. */
  batch?: string;
  /** `true` if it was acknowledged while it waited for its turn. */
  isQueued?: true;
  /** The final rejection. */
  refused?: string;
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
  /** Number of cycles of the turn that had ended. */
  cycle: number;
  /** The results of background operations in the request, in order. */
  notices: string[];
  /** Prefixes of the newer messages that the request contains. */
  newer: string[];
  /** Number of further ones that it only counts. */
  newerLeft: number;
  /** Number of the life that made it. */
  life: number;
  /** As in `CommitRecord`. */
  step: number;
  /** The end of its connection as the provider saw it. Absent if it never ended. */
  over?: { how: "complete" | "aborted" | "lost"; step: number };
  /** Images of the message in the request, and those that it reported as missing. */
  images: number;
  missing: number;
  /** `true` if any message of the request names an image. */
  hasImages: boolean;
  /** `true` if the request required structured output. */
  wantsData: boolean;
  /** The unfit answer instead of data. */
  unfit?: UnfitAnswer;
}

/** A request for a summary. */
export interface SummaryCallRecord
  extends Pick<
    ModelCallRecord,
    "conversation" | "at" | "life" | "step" | "over" | "requestId" | "isCounted"
  > {
  failure?: ModelFailure;
  says: SummaryPlan["says"];
  /** Text of the uninterrupted reply. */
  text: string;
  /** Reported input tokens: a power of two, distinct among those of a conversation. */
  tokens: number;
  /** The messages to summarise: those between the instructions and the order. */
  before: Said[];
}

/** An event of the agent's session. */
export interface SessionRecord {
  seq: number;
  /** Its message; absent if no model gets it. */
  said?: Said;
  /** Tokens of the message. */
  tokens: number;
  beginsTurn: boolean;
  /** Of a summary: the events below this number are covered. */
  covers?: number;
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

/** An answer that a client gave to a request for approval. */
export interface ApprovalRecord {
  conversation: number;
  client: number;
  user: string;
  operationId: string;
  approved: boolean;
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
  /** As in `CommitRecord`. */
  step: number;
  /** When it began. */
  at: number;
  /** When it ended; absent if it never did. */
  over?: { step: number; at: number };
  /** When its signal was aborted: by a cancellation, or by the end of its time limit. */
  aborted?: { step: number; at: number };
  /** Result; absent if it failed or did not end. */
  answer?: Json;
}

/** A run of a hook. */
export interface HookRunRecord {
  conversation: number;
  kind: "assembly" | "extraction";
  turnId: string;
  operationId: string;
  /** As in `CommitRecord`. */
  step: number;
}

/** A stop, a resume, an end or a change of the order by a client. */
export interface ActRecord {
  conversation: number;
  user: string;
  does: ActPlan["does"];
  turnId?: string;
  order?: TurnOrder;
  /** The id of its envelope. Absent if it is not sent as a signal. */
  id?: string;
  reason: string;
  /** As in `CommitRecord`. */
  step: number;
  /** The response: done, or refused with this code. Absent without one. */
  answer?: { what: "done" | (string & {}); step: number };
}

/** A commit of an actor. */
export interface CommitRecord {
  conversation: number;
  /** Number of its first journal entry. */
  seq: number;
  /** Its place among everything that was recorded. */
  step: number;
  /** Milliseconds since the run began. */
  at: number;
  /** Number of the life that made it. */
  life: number;
}

/** Operations that an actor gave its executor. */
export interface DispatchRecord {
  conversation: number;
  operationIds: string[];
  step: number;
  /** Milliseconds since the run began. */
  at: number;
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
  /** The events of the agent's session. */
  session: SessionRecord[];
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
  summaryCalls: SummaryCallRecord[];
  toolRuns: ToolRun[];
  hookRuns: HookRunRecord[];
  submissions: Submission[];
  approvals: ApprovalRecord[];
  acts: ActRecord[];
  commits: CommitRecord[];
  dispatches: DispatchRecord[];
  /** Operations whose cancellation an executor got, once each time. An attempt has an executor of its own. */
  cancellations: { operationId: string; executor: number }[];
  /** Turns that were active and waited for nothing. */
  stuck: string[];
  /** Number of the newest record. */
  steps: number;
  /** Results reported by the executor, by operation. */
  reported: Map<string, ToolResult[]>;
  connections: ConnectionRecord[];
  /** Incidents that no run should have. */
  incidents: string[];
  outcomes: Outcome[];
  /** Duration in simulated milliseconds. */
  elapsed: number;
}

/** Returns the place of a new record. */
export function nextStep(history: History): number {
  history.steps += 1;
  return history.steps;
}
