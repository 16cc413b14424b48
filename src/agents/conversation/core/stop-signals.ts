/** The signals that stop, resume and complete turns and conversations. */

import type { Caller } from "../../../protocol/views.ts";

/** The author of a stop or a resume, and the reason. */
export interface Stop {
  caller: Caller;
  reason?: string;
  /** Absent where it did not come as a signal of a client. */
  origin?: SignalOrigin;
}

/** The ids by which a change that came as a signal is known. */
export interface SignalOrigin {
  /** The idempotency key as supplied; absent if the client sent none. */
  id?: string;
  correlationId: string;
  /** The correlation id as supplied; absent if the client sent none. */
  supplied?: string;
}

/** Stops a turn, or the conversation: its turns end, and none begins until it resumes. */
export interface Cancel extends Stop {
  type: "conversation.cancel";
  turn?: number;
}

/** Lets a conversation that was stopped go on with its next message. */
export interface Resume extends Stop {
  type: "conversation.resume";
}

/** Ends a conversation for good. */
export interface Complete extends Stop {
  type: "conversation.complete";
}
