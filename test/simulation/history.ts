/** The history of a simulation, for the checker and for people. */

import type { JournalRow } from "../../src/agents/conversation/core/journal-entry.ts";
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import type { UsageTotals } from "../../src/model/usage.ts";
import type {
  JournalEntryView,
  MessageView,
  TurnOrder,
  TurnView,
} from "../../src/protocol/conversation-schemas.ts";
import type { ToolResult } from "../../src/protocol/executor-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { TurnPrompt } from "../../src/protocol/prompt.ts";
import type { TurnRecording, TurnReplay } from "../../src/protocol/recording.ts";
import type { ToolOutcome } from "../../src/protocol/requests.ts";
import type { TurnRecord } from "../../src/protocol/turn-records.ts";
import type { Content } from "../../src/shared/content.ts";
import type { Json } from "../../src/shared/json.ts";
import type { PromptMessage } from "./check-requests.ts";
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

/** The request of a call as the conversation rebuilds it. */
export interface PromptRecord {
  turnId: string;
  /** The number of the call. */
  call: number;
  /** The id of its last response; absent without a response. */
  requestId?: string;
  body: Json;
  missing: TurnPrompt["missing"];
}

export interface ModelCallRecord {
  conversation: number;
  /** The request, as text. */
  body: string;
  /** The requests of the turn's calls when the provider received this request. The last is this call. */
  prompts: PromptRecord[];
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
  /** Reported input tokens: zero, or a power of two that is distinct among the requests of a message. */
  tokens: number;
  /** `true` if the caller received the token count. */
  isCounted: boolean;
  /** The messages before the turn's own, without instructions. */
  before: PromptMessage[];
  /** The messages after the turn's own, without withdrawn answers. */
  moves: PromptMessage[];
  /** Number of cycles of the turn that had ended. */
  cycle: number;
  /** The results of background operations in the request, in order. */
  notices: string[];
  /** Prefixes of the newer messages that the request contains. */
  newer: string[];
  /** Number of further newer messages that the request only counts. */
  newerLeft: number;
  /** Number of the life that made it. */
  life: number;
  /** As in `CommitRecord`. */
  step: number;
  /** The end of its connection as the provider saw it. Absent if it never ended. */
  over?: { how: "complete" | "aborted" | "lost"; step: number };
  /** Images of the message in the request, and images that the request reports as missing. */
  images: number;
  missing: number;
  /** `true` if any message of the request names an image. */
  hasImages: boolean;
  /** `true` if the request required structured output. */
  wantsData: boolean;
  /** The unfit answer instead of data. */
  unfit?: UnfitAnswer;
}

/** A request for a summary or for a title. */
export interface SideCallRecord
  extends Pick<
    ModelCallRecord,
    "conversation" | "at" | "life" | "step" | "over" | "requestId" | "isCounted"
  > {
  failure?: ModelFailure;
  /** The quoted message of a request for a title; absent for a summary. */
  titled?: string;
  says: SummaryPlan["says"];
  /** Text of the uninterrupted reply. */
  text: string;
  /** Reported input tokens: a power of two, distinct in the conversation. */
  tokens: number;
  /** The messages to summarise, between the instructions and the order. */
  before: PromptMessage[];
}

/** An event of the agent's session. */
export interface SessionRecord {
  seq: number;
  /** Its message; absent if no model gets it. */
  message?: PromptMessage;
  /** Tokens of the message. */
  tokens: number;
  /** Number of its turn; absent for an event without a turn. For the note of a replacement, the number of the new turn. */
  turn?: number;
  beginsTurn: boolean;
  /** For a summary: the events below this number are covered. */
  covers?: number;
}

/** A client's result for its own tool. */
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

/** A client's answer to a request for approval. */
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

export interface HookRunRecord {
  conversation: number;
  kind: "assembly" | "extraction";
  turnId: string;
  operationId: string;
  /** As in `CommitRecord`. */
  step: number;
}

/** A stop, a resume, an end, a change of the order or a replaced turn, by a client. */
export interface ActRecord {
  conversation: number;
  user: string;
  does: ActPlan["does"];
  turnId?: string;
  order?: TurnOrder;
  /** The id of its envelope. Absent if it is not sent as a signal. */
  id?: string;
  /** Its idempotency key, if it replaces a turn. */
  key?: string;
  /** The edited message. */
  sent?: SentMessage;
  /** The turn to replace, before its first request took effect. */
  before?: TurnView;
  /** The new turn in the response. */
  made?: string;
  reason: string;
  /** As in `CommitRecord`. */
  step: number;
  /** The response: done, or refused with this code. Absent without one. */
  answer?: { what: "done" | (string & {}); step: number };
}

/** A fork by a client. Each fork has one key, however often the client requests it. */
export interface ForkRecord {
  /** The numbers of the fork's conversation and of the forked conversation. */
  conversation: number;
  of: number;
  turnId: string;
  /** Number of requests, with the repeated requests. */
  requests: number;
  /** As in `CommitRecord`: when the client requested it first. */
  step: number;
  /** The responses: done, or refused with this code. */
  answers: string[];
  /** The entry that the user erased in the fork. */
  erased?: Erased;
  /** The fork at rest; absent if it does not exist. */
  outcome?: Outcome;
  /** The places that still have something at rest: of the erased text, or of a fork that does not exist. */
  left: string[];
}

/** An erased entry, with the beginning of its text. */
export interface Erased {
  id: string;
  text: string;
  /** The response; absent without one. */
  answer?: "done" | (string & {});
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

/** Operations that an actor sent to its executor. */
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
  /** State after a final connection that resumed; absent if the client received no frame. */
  resumed?: LiveConversation;
}

/** A conversation at rest. */
/** The replay of an ended turn, or the problem with it. An active turn has no replay. */
export interface ReplayRecord {
  turnId: string;
  recording?: TurnRecording;
  replay?: TurnReplay;
  problem?: string;
}

export interface Outcome {
  lives: number;
  /** Prefixes of the messages with a turn that stayed active until the next call. */
  abandoned: string[];
  /** State from the database at rest. */
  stored: ConversationState;
  /** State of the living actor; absent if no actor lives. */
  memory?: ConversationState;
  /** Timers of the living actor. */
  timers: number;
  /** `true` if the wake-up is still armed. */
  armed: boolean;
  turns: TurnView[];
  messages: MessageView[];
  journal: JournalEntryView[];
  /** The entries of each turn, the newest first, as the filter by turn gives them. */
  journals: ReadonlyMap<string, JournalEntryView[]>;
  /** The rows of the journal, and the turns with their content. */
  rows: JournalRow[];
  contents: ReadonlyMap<number, Turn>;
  /** The events of the agent's session. */
  session: SessionRecord[];
  /** The notes on calls of replaced turns in the session, by the turn that replaced them. */
  notes: ReadonlyMap<string, string>;
  /** The replay of each turn. */
  replays: ReplayRecord[];
  /** The requests of all calls. */
  prompts: PromptRecord[];
  toolState: Record<string, Json>;
  /** Last usage that the directory received. */
  published: UsageTotals | undefined;
  /** The records of the turns in the directory, the oldest first. */
  listed: TurnRecord[];
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
  sideCalls: SideCallRecord[];
  toolRuns: ToolRun[];
  hookRuns: HookRunRecord[];
  submissions: Submission[];
  approvals: ApprovalRecord[];
  acts: ActRecord[];
  forks: ForkRecord[];
  commits: CommitRecord[];
  dispatches: DispatchRecord[];
  /** Cancellations that executors received. Each attempt has its own executor. */
  cancellations: { operationId: string; executor: number }[];
  /** Turns that were active and stuck. */
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
