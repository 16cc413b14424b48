/** The signals that stop, resume and complete turns and conversations. */
import type { Caller } from "../../../protocol/caller-schemas.ts";

export interface Stop {
  caller: Caller;
  reason?: string;
  /** Absent if it did not come as a signal of a client. */
  origin?: SignalOrigin;
}

/** The ids that identify a change by a signal. */
export interface SignalOrigin {
  /** The idempotency key as supplied, if any. */
  id?: string;
  correlationId: string;
  /** The correlation id as supplied, if any. */
  supplied?: string;
}

/** Stops a turn, or the conversation. A stopped conversation ends its turns and begins no turn until it resumes. */
export interface Cancel extends Stop {
  type: "conversation.cancel";
  turn?: number;
}

/** Lets a stopped conversation continue with its next message. */
export interface Resume extends Stop {
  type: "conversation.resume";
}

export interface Complete extends Stop {
  type: "conversation.complete";
}
