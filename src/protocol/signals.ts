/** Signals from outside, as clients send them to a conversation, and the answer to each. */
import type { Result } from "../shared/errors.ts";
import type { AcceptedSignal, SignalEnvelope } from "./signal-schemas.ts";

export type ExternalType = SignalEnvelope["type"];

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

export type SignalResult = Result<AcceptedSignal>;
