/** The views of resources that servers answer with, over HTTP, in frames and by RPC. Times are ISO 8601 UTC. */
import type { z } from "zod";
import type { AgentCallView } from "./agent-call.ts";
import type { turnCaller, turnIssues } from "./caller-schemas.ts";
import type {
  attachment,
  conversation,
  conversationSummary,
  deadLetter,
  journalEntry,
  message,
  turn,
  turnOrderSchema,
  turnSummary,
} from "./conversation-schemas.ts";
import type { approval, move, wireError } from "./move-schemas.ts";
import type { TaskView } from "./task-summary.ts";
import type { agentUsage, providerCall, turnTokens, usage } from "./usage-schemas.ts";

export type WireError = z.infer<typeof wireError>;

/** An uploaded image or file. */
export type AttachmentView = z.infer<typeof attachment>;

/**
 * The order of turns that overlap. `parallel`: at the same time. `queued`: one after another, in the order of their messages.
 * `interrupt`: a new message stops the active turns.
 */
export type TurnOrder = z.infer<typeof turnOrderSchema>;

export type ConversationView = z.infer<typeof conversation>;

/** A conversation in a list. */
export type ConversationSummary = z.infer<typeof conversationSummary>;

/** A conversation as its actor publishes it to the lists, without the members that change with every turn and each person. */
export type PublishedConversation = Omit<ConversationSummary, "lastActivityAt" | "pinned" | "archived">;

/** The usage of model calls, failed attempts included. */
export type UsageView = z.infer<typeof usage>;

/** The total usage of an agent's conversations. */
export type AgentUsage = z.infer<typeof agentUsage>;

export type MessageView = z.infer<typeof message>;

/** The caller that started a turn: a user, another agent in one of its turns, or a node of a run. */
export type Caller = z.infer<typeof turnCaller>;

/** A turn in a list or a snapshot. Lists omit `output` and `spent`. `caller` is absent if a user started the turn. */
export type TurnSummary = Omit<z.infer<typeof turnSummary>, "caller"> &
  Partial<Pick<TurnView, "caller" | "output" | "spent">>;

export type TurnIssues = z.infer<typeof turnIssues>;

export type TurnView = z.infer<typeof turn>;

/** The record of a model call, with types that cross RPC. */
export type CallView = z.infer<typeof providerCall>;

/** Token counts as reported by the providers; an optional one is present if any provider reported it. */
export type TurnUsage = NonNullable<z.infer<typeof turnTokens>>;

/** One iteration of a turn's loop. */
export type MoveView = z.infer<typeof move>;

/** The approval of an operation. The rule is present while the operation waits, if the tool has one. */
export type ApprovalView = z.infer<typeof approval>;

export interface OperationView {
  id: string;
  turnId: string;
  name: string;
  /** The model's input. For a call that needs a person's approval: the input that runs. */
  input: unknown;
  /** The model's own input of such a call. Absent if the tool does not map it. */
  modelInput?: unknown;
  /** The task or the workflow that such a call runs, as `library/id`. Absent if the tool has no target. */
  target?: string;
  /** A client runs the tool: the turn waits for its result. */
  client?: true;
  /** The agent that answers the call. */
  agent?: AgentCallView;
  /** The run of a workflow that the call has started, in its present or last attempt. Its starter, and operators, may read it. */
  runId?: string;
  /** The operation runs in the background while the agent continues. */
  async?: true;
  /** The result comes later, by a handle: until this time, ISO 8601 UTC. Absent unless the call is deferred now. */
  deferredUntil?: string;
  /** The run or the agent of the call, or work below it, waits for a person. */
  held?: true;
  /** Number of the present or last attempt; 1 when absent. */
  attempt?: number;
  /** Present if the call needs a person's approval. */
  approval?: ApprovalView;
  /** `awaiting_approval`: the call runs once a person approves it. */
  state: "awaiting_approval" | "running" | "completed" | "failed" | "cancelled";
  /** The record of the last attempt, for a task of steps. */
  task?: TaskView;
  result?: unknown;
  error?: WireError;
}

export type JournalEntryView = z.infer<typeof journalEntry>;

export interface Snapshot {
  conversation: ConversationView;
  /** The turns of `messages`, and every active one. */
  turns: TurnSummary[];
  /** The last page. HTTP serves earlier pages. */
  messages: MessageView[];
  partials: { messageId: string; turnId: string; text: string }[];
  operations: OperationView[];
}

/** A dead letter as operators see it. */
export type DeadLetterView = z.infer<typeof deadLetter>;
