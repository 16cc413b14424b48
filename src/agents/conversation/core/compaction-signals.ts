/** The signals by which a model that was called for a summary reports. */

import type { ModelError } from "../../../model/error.ts";
import type { ModelReply } from "../../../model/reply.ts";
import type { AttemptFacts } from "./signals.ts";

/** The compaction and the attempt that a report answers. */
interface SummaryAttempt {
  session: string;
  /** Number of the turn whose end began the compaction. */
  begunBy: number;
  attempt: number;
}

/** The reply of a model that was called for a summary. */
export type SummaryCompleted = {
  type: "conversation.compaction.completed";
  reply: ModelReply;
  facts: AttemptFacts;
} & SummaryAttempt;

/** `facts` is absent where no call was made. */
export type SummaryFailed = {
  type: "conversation.compaction.failed";
  error: Pick<ModelError, "category" | "message" | "retriable" | "retryAfterMs">;
  facts?: AttemptFacts;
} & SummaryAttempt;

/** The outcome of a call for a summary. */
export type CompactionSignal = SummaryCompleted | SummaryFailed;
