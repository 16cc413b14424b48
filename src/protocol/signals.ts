/** Signals from outside, as clients send them to a conversation, and the answer to each. */
import type { Result } from "../shared/errors.ts";

/** The types of signals that clients may send: a user's message, a stop, a resume. */
export const EXTERNAL_TYPES = [
  "conversation.user.message",
  "conversation.cancel",
  "conversation.resume",
] as const;

export type ExternalType = (typeof EXTERNAL_TYPES)[number];

/** Types that only a conversation creates. External signals of these types are refused. */
export const INTERNAL_TYPES = [
  "conversation.assistant.delta",
  "conversation.assistant.message",
  "conversation.llm.requested",
  "conversation.llm.completed",
  "conversation.llm.failed",
  "conversation.tool.requested",
  "conversation.tool.completed",
  "conversation.tool.failed",
  "conversation.tool.cancelled",
  "conversation.subagent.requested",
  "conversation.subagent.started",
  "conversation.subagent.completed",
  "conversation.subagent.failed",
  "conversation.subagent.stopped",
  "conversation.queue.overflow",
] as const;

/** Commands between the parts of a conversation. External signals of these types are refused. */
export const RESERVED_TYPES = [
  "conversation.cmd.ingest",
  "conversation.cmd.drain",
  "conversation.cmd.cancel",
  "conversation.cmd.instruction.result",
] as const;

/** The reason why an envelope is refused. */
export type EnvelopeProblem =
  | "missing_type"
  | "invalid_type"
  | "reserved_type"
  | "external_type_not_allowed"
  | "missing_data_envelope"
  | "invalid_data"
  | "invalid_meta"
  | "invalid_extensions"
  | "invalid_id"
  | "invalid_source"
  | "invalid_time"
  | "invalid_specversion";

/** A signal in the envelope that clients send. The members of the CloudEvents standard have their meaning there. */
export interface SignalEnvelope {
  /** The idempotency key. The same id with the same correlation id is applied once. */
  id?: string;
  type: ExternalType;
  /** A URI reference of the sender. Accepted and not kept. */
  source?: string;
  /** ISO 8601. Accepted and not kept: the journal has the time of the receipt. */
  time?: string;
  /**
   * For a message: the members of a request for a turn. For a stop: `{turnId?, reason?}`. Without `turnId` the whole
   * conversation stops. For a resume: `{reason?}`.
   */
  data?: Record<string, unknown>;
  /** Overrides the members of `extensions`. */
  meta?: Record<string, unknown> | null;
  /** `correlation_id` is stored with all consequences of the signal. If it is missing or blank, a new id is created. */
  extensions?: Record<string, unknown> | null;
  specversion?: string;
}

/** A turn that a message started, now or before. */
export interface StartedTurn {
  turnId: string;
  messageId: string;
  /** Number of the journal entry before the turn's first. Subscribe from it to get the whole turn. */
  from: number;
  /** An earlier request with this key started the turn. */
  repeated: boolean;
  /** The turn failed in the commit that recorded its message: the conversation is stopped, or its budget is used up. */
  status?: "failed";
}

/** A signal that was accepted. */
export type AcceptedSignal =
  /** The message started a turn, now or before; `failed` as in `StartedTurn`. */
  | ({ status: "started" | "failed"; correlationId: string } & Omit<StartedTurn, "status">)
  /** The message is stored. It starts its turn after the earlier messages. */
  | { status: "queued"; correlationId?: string }
  /** The stop or the resume is done, now or before. */
  | { status: "applied"; correlationId: string };

export type SignalResult = Result<AcceptedSignal>;
