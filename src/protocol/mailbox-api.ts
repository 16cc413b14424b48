/** The RPC surface of mailboxes: envelopes between actors, and dead letters for operators. */

import type { ErrorData, Result } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type { ActorAddress, Envelope } from "./envelope.ts";

/** An attempt to deliver. */
export interface Attempt {
  /** Ascends strictly over all attempts for one operation, redeliveries and crashes included. */
  number: number;
  /** No further attempt follows by itself: whatever the receiver refuses now, it refuses for good. */
  last: boolean;
}

export type Answer =
  /** The envelope was acted upon, now or before. */
  | { type: "done"; result: Json }
  /** It was not acted upon. `recorded`: nor will it be by this or any earlier attempt, however late it arrives. */
  | { type: "refused"; error: ErrorData; recorded: boolean }
  /** It was not acted upon; a later attempt may be. */
  | { type: "busy"; error: ErrorData; retryAfterMs?: number };

/** The RPC surface that mailboxes use of each other. */
export interface MailboxPeer {
  receive(envelope: Envelope, attempt: Attempt): Promise<Answer>;
}

export interface DeadLetterApi {
  /** `NOT_FOUND` for another tenant, `FORBIDDEN` without the role of an operator. */
  deadLetters(principal: Principal, options?: PageOptions): Promise<Result<Page<DeadLetterView>>>;
  /** As `deadLetters`; also `NOT_FOUND` for what is no dead letter, `CONFLICT` for one that is too old. */
  redeliver(principal: Principal, operationId: string): Promise<Result<null>>;
}

/** A dead letter as operators see it. */
export interface DeadLetterView {
  /** The operation's id. */
  id: string;
  status: "failed" | "unknown";
  type: string;
  from: ActorAddress;
  to: ActorAddress;
  inReplyTo?: string;
  error: ErrorData;
  attempts: number;
  /** Without secrets; `null` where it has more than 16 KiB. */
  body: Json;
  /** ISO 8601 UTC. */
  sentAt: string;
  diedAt: string;
  /** When a result of it came after all. */
  repliedAt?: string;
}

/** A dead letter is seen for a few days after it can no longer be redelivered. */
export const LETTER_KEPT_MS = 35 * 24 * 3_600_000;
