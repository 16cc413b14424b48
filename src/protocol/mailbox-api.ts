/** The RPC interface of every actor's mailbox: envelopes from other actors, and dead letters for operators. */
import { type ErrorData, forbidden, type Result } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import { mayReadAll, type Principal } from "../shared/principal.ts";
import type { DeadLetterView } from "./conversation-schemas.ts";
import type { Envelope } from "./envelope.ts";

export interface Attempt {
  /** Ascends strictly over all attempts for one operation, including redeliveries and across crashes. */
  number: number;
  /** No automatic attempt follows: a refusal now is final. */
  last: boolean;
}

export type Answer =
  /** The receiver has acted upon the envelope, now or before. */
  | { type: "done"; result: Json }
  /** The receiver has not acted. If `recorded`, this or an earlier attempt that arrives late will not make it act either. */
  | { type: "refused"; error: ErrorData; recorded: boolean }
  /** The receiver has not acted, but may do so at a later attempt. */
  | { type: "busy"; error: ErrorData; retryAfterMs?: number };

/** The part of a mailbox that other mailboxes call. */
export interface MailboxPeer {
  receive(envelope: Envelope, attempt: Attempt): Promise<Answer>;
}

export interface DeadLetterApi {
  /** `NOT_FOUND` for another tenant, `FORBIDDEN` without the role of an operator. */
  deadLetters(principal: Principal, options?: PageOptions): Promise<Result<Page<DeadLetterView>>>;
  /**
   * Redelivers a dead letter. Errors as for `deadLetters`, and `NOT_FOUND` for an unknown dead letter, `CONFLICT` if
   * it is too old.
   */
  redeliver(principal: Principal, operationId: string): Promise<Result<null>>;
}

/** A dead letter stays visible for a few days after it can no longer be redelivered. In milliseconds. */
export const LETTER_KEPT_MS = 35 * 24 * 3_600_000;

/** Throws `FORBIDDEN` unless the principal is an operator or administrator. */
export function requireOperator(principal: Principal): void {
  if (mayReadAll(principal)) return;
  throw forbidden("Only operators and administrators may see and redeliver dead letters.");
}
