/** What a `Conversation` actor offers to the others: its RPC surface as a type. */

import type { ProviderCallRecord } from "../model/call-record.ts";
import type { ModelContext, OutputSpec, ToolSpec } from "../model/context.ts";
import type { ContextMessage } from "../model/messages.ts";
import type { Result } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type { ToolSubmission } from "./client-tools.ts";
import type { Content, ConversationView, MessageView, TurnSummary, WireError } from "./frames.ts";

export interface CreateConversation {
  id: string;
  agentId: string;
  title?: string;
  /** Absent = the agent's first project. */
  projectId?: string;
  /** Users besides the creator. */
  users?: string[];
  /**
   * What was said elsewhere before: the model sees it, the transcript does not show it. At most 1 000 messages and 1 MiB,
   * of role, content, name and calls only; each call is followed by its result.
   */
  history?: ContextMessage[];
  /** `false` keeps it out of lists, those of the directory and of its agent: it is found by its id only. */
  listed?: boolean;
  /**
   * Names the request that it is created by: the same request again is answered with the conversation, another one with
   * `IDEMPOTENCY_CONFLICT`. Without one an id that is taken is `CONFLICT`.
   */
  fingerprint?: string;
}

export interface StartTurn {
  content: Content;
  replyToMessageId?: string;
  /** Becomes the signal's id: the same key and body answer the same turn. */
  idempotencyKey?: string;
  /** The turn's answer must be JSON of this schema. */
  output?: OutputSpec;
  /**
   * Tools that the client runs itself: the turn waits for their results. At most 64 with 256 KiB, named differently from
   * each other and from the agent's.
   */
  tools?: ToolSpec[];
  /** Which tools the turn's first call of the model may or must use; `auto` when absent. */
  toolChoice?: ModelContext["toolChoice"];
}

export interface StartedTurn {
  turnId: string;
  messageId: string;
  /** Number of the journal entry before the turn's first: subscribe from it to see the whole turn. */
  from: number;
  /** The key had started this turn before; nothing was started now. */
  repeated: boolean;
}

/** A result that was taken; the same again for one that had been. */
export interface SubmittedResult {
  operationId: string;
  turnId: string;
}

/** One iteration of a turn's loop. */
export interface MoveView {
  id: string;
  /** From 1. */
  sequence: number;
  reasoning?: string;
  toolCall?: {
    operationId: string;
    name: string;
    toolId: string | null;
    input: Json;
    /** The client runs it. */
    client?: true;
  };
  toolResult?: { success: boolean; result?: Json; error?: WireError };
  /** The whole reply as the model gave it; on the first move of a reply. */
  raw?: Json;
  /** ISO 8601 UTC. */
  createdAt: string;
}

/** Who started a turn. */
export type Caller = { type: "user"; userId: string };

/** Tokens as the providers counted them; the optional ones where one of them did. */
export interface TurnUsage {
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens?: number;
  cacheWriteTokens?: number;
  reasoningTokens?: number;
}

export interface TurnView extends TurnSummary {
  conversationId: string;
  caller: Caller;
  input: Content;
  userMessageId: string;
  agentMessageIds: string[];
  replyToMessageId: string | null;
  contextAssemblyRunId: string | null;
  memoryExtractionRunId: string | null;
  /** Milliseconds from creation to completion; `null` while active. */
  latencyMs: number | null;
  /** Tokens of all model calls, failed attempts included; `null` if no provider counted. */
  usage: TurnUsage | null;
  /** US dollars; `null` if no model that was asked has prices. */
  cost: number | null;
  /** What each model call took, in order. None in turns of releases that kept no record. */
  calls: ProviderCallRecord[];
  moves: MoveView[];
}

export interface JournalEntryView {
  seq: number;
  type: string;
  time: string;
  turnId?: string;
  messageId?: string;
  operationId?: string;
  data?: Json;
}

export interface SubscribeOptions {
  /** Continue after this entry; absent = begin with a snapshot. */
  from?: number;
  /** Only this turn's frames, without snapshot; the stream ends with the turn. */
  turnId?: string;
  /** How frames are framed in the bytes: server-sent events, or one JSON text a line. */
  encoding: "sse" | "ndjson";
}

export interface ConversationApi {
  create(principal: Principal, input: CreateConversation): Promise<Result<ConversationView>>;
  view(principal: Principal): Promise<Result<ConversationView>>;
  /** Whether this principal may say something here; if not, why. */
  checkSpeaker(principal: Principal): Promise<Result<null>>;
  startTurn(principal: Principal, input: StartTurn): Promise<Result<StartedTurn>>;
  /** As `startTurn`, with the turn's frames as a stream that ends with the turn. */
  streamTurn(
    principal: Principal,
    input: StartTurn,
    encoding: SubscribeOptions["encoding"],
  ): Promise<Result<StartedTurn & { frames: ReadableStream<Uint8Array> }>>;
  /** Signals from outside, one or several, each in its envelope `{id?, type, data}`. */
  ingest(principal: Principal, signals: unknown): Promise<Result<StartedTurn[]>>;
  /**
   * Results of tools that the client runs, all or none. The same result again changes nothing; another one, one that is
   * late, or one of a tool that is not the client's is `CONFLICT`, an unknown operation `NOT_FOUND`.
   */
  submitToolResults(principal: Principal, results: ToolSubmission[]): Promise<Result<SubmittedResult[]>>;
  messages(principal: Principal, options?: PageOptions): Promise<Result<Page<MessageView>>>;
  turns(principal: Principal, options?: PageOptions): Promise<Result<Page<TurnSummary>>>;
  turn(principal: Principal, turnId: string): Promise<Result<TurnView>>;
  journal(principal: Principal, options?: PageOptions): Promise<Result<Page<JournalEntryView>>>;
  /** A stream of frames as bytes; a failure is an error result instead of a stream. */
  subscribe(principal: Principal, options: SubscribeOptions): Promise<Result<ReadableStream<Uint8Array>>>;
}
