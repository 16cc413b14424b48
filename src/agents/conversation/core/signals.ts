/**
 * Signals: everything that reaches a conversation. Users and clients send signals from outside; effects report their
 * outcomes as signals too.
 */

import type { ModelError } from "../../../model/error.ts";
import type { ModelReply, RateLimitFeedback } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { StartTurn } from "../../../protocol/conversation-api.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { ToolOutcome } from "../../../protocol/requests.ts";
import type { Caller } from "../../../protocol/views.ts";
import type { ErrorData } from "../../../shared/errors.ts";

/** A user's message: starts a turn. */
export interface UserMessage {
  type: "conversation.user.message";
  /** The idempotency key as supplied; absent if the client sent none. */
  id?: string;
  caller: Caller;
  data: Omit<StartTurn, "idempotencyKey">;
}

/** Measurements of one attempt of a model call. Times are milliseconds since the epoch. */
export interface AttemptFacts {
  startedAt: number;
  finishedAt: number;
  firstTextAt?: number;
  /** The HTTP status, where there was one. */
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  /** The provider's count, for failed attempts too. */
  usage?: TokenUsage;
  /** Present only where a limit was reached. */
  rateLimit?: RateLimitFeedback;
}

/** The attempt that a report of a model call answers. */
interface Attempt {
  turn: number;
  item: number;
  attempt: number;
  facts: AttemptFacts;
}

export type ModelCompleted = { type: "conversation.llm.completed"; reply: ModelReply } & Attempt;

export type ModelFailed = {
  type: "conversation.llm.failed";
  error: ModelError;
  /** Text was streamed and must be withdrawn. */
  streamed: boolean;
} & Attempt;

/** The result of an attempt that the executor ran. */
export interface ToolCompleted {
  type: "conversation.tool.completed";
  turn: number;
  item: number;
  attempt: number;
  result: ToolResult;
}

/** The outcome of an effect, addressed to the turn that called for it. */
export type EffectSignal = ModelCompleted | ModelFailed | ToolCompleted;

/** The result of a tool that a client ran. */
export interface ClientResult {
  type: "conversation.tool.submitted";
  turn: number;
  item: number;
  outcome: ToolOutcome;
}

/** Fails the operations whose deadline has passed. */
export interface Expiry {
  type: "conversation.cmd.expire";
}

/** Resumes the active turns after the actor lost its effects. */
export interface Recovery {
  type: "conversation.cmd.recover";
}

/** Fails a turn whose outcome can never be stored. */
export interface Abandon {
  type: "conversation.cmd.abandon";
  turn: number;
  error: ErrorData;
  /** Measurements of the model call whose outcome is lost. */
  facts?: AttemptFacts;
}

export type Signal = UserMessage | EffectSignal | ClientResult | Expiry | Recovery | Abandon;
