/** What a simulation leaves behind for the checker and for people. */

import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import type { UsageTotals } from "../../src/model/usage.ts";
import type { ToolResult } from "../../src/protocol/executor-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { ToolOutcome } from "../../src/protocol/requests.ts";
import type { JournalEntryView, MessageView, TurnView } from "../../src/protocol/views.ts";
import type { Content } from "../../src/shared/content.ts";
import type { Json } from "../../src/shared/json.ts";
import type { Fault, ModelFailure, Plan, ToolName, UnfitAnswer } from "./plan.ts";

/** A user's message, from its first sending on. */
export interface SentMessage {
  conversation: number;
  client: number;
  user: string;
  /** What its content begins with. */
  tag: string;
  content: Content;
  sentAt: number;
  /** Absent while nobody told its sender that it was recorded. */
  acknowledgedAt?: number;
  /** By an answer to the request itself, and not by the frames that everybody gets. */
  isAnswered: boolean;
  /** As the acknowledgement named it, where it did. */
  turnId?: string;
}

export interface ModelCallRecord {
  conversation: number;
  tag: string;
  round: number;
  /** From 1: how often this round was asked for. */
  call: number;
  failure?: ModelFailure;
  /** What the model says if nothing interrupts it. */
  text: string;
  /** As the answer named the request. */
  requestId: string;
  /** Which model of the chain was asked. */
  profile: number;
  /** The tokens of input it says it read: a power of two, another for each request of a message, or none. */
  tokens: number;
  /** The count of tokens reached the caller. */
  isCounted: boolean;
  /** The request had the conversation's seeded history before everything else, once. */
  isSeeded: boolean;
  /** Images of the message that it carried, and those that it said were gone. */
  images: number;
  missing: number;
  /** It was asked for data. */
  wantsData: boolean;
  /** In place of data. */
  unfit?: UnfitAnswer;
}

/** A result that a client gave of a tool of its own. */
export interface Submission {
  conversation: number;
  client: number;
  operationId: string;
  outcome: ToolOutcome;
  /** Milliseconds since the epoch. */
  at: number;
  /** By an answer to it: it was taken, or refused with this code. Absent if there was no answer. */
  answer?: "taken" | (string & {});
}

export interface ToolRun {
  conversation: number;
  /** The planned call. */
  call: string;
  tool: ToolName;
  operationId: string;
  /** What it answered; absent if it failed or did not end. */
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
  /** After a last connection that continued where the client was; absent if it never got anything. */
  resumed?: LiveConversation;
}

/** A conversation after everything came to rest. */
export interface Outcome {
  lives: number;
  /** What the messages begin with whose turns were left active until somebody called again. */
  abandoned: string[];
  /** Read from the database when everything had come to rest. */
  stored: ConversationState;
  /** What the living actor holds; absent if none lived. */
  memory?: ConversationState;
  /** Timers that the living actor still had. */
  timers: number;
  /** The wake-up is still armed. */
  armed: boolean;
  turns: TurnView[];
  messages: MessageView[];
  journal: JournalEntryView[];
  toolState: Record<string, Json>;
  /** What the directory was told last. */
  published: UsageTotals | undefined;
  clients: ClientOutcome[];
  /** A client that replays everything from the beginning. */
  replayed: LiveConversation;
  /** A client that begins with a snapshot. */
  snapshot: LiveConversation;
}

export interface History {
  plan: Plan;
  timeline: string[];
  /** Every time a fault took effect. */
  fired: readonly Fault[];
  sent: SentMessage[];
  modelCalls: ModelCallRecord[];
  toolRuns: ToolRun[];
  submissions: Submission[];
  /** Results as the executor reported them, by operation. */
  reported: Map<string, ToolResult[]>;
  connections: ConnectionRecord[];
  /** What should not happen in any run. */
  incidents: string[];
  outcomes: Outcome[];
  /** How long it took in the simulation, in milliseconds. */
  elapsed: number;
}
