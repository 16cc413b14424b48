/**
 * Dead letters: undelivered envelopes, as their sender stores them and as operators see them.
 *
 * DEAD-1  The view of a letter contains no secrets: values under names of secrets and texts that look like keys are removed.
 */
import type { DeadLetterView } from "../../../protocol/conversation-schemas.ts";
import type { ActorAddress, Envelope } from "../../../protocol/envelope.ts";
import { requireOperator } from "../../../protocol/mailbox-api.ts";
import { defined } from "../../../shared/defined.ts";
import { type ErrorData, notFound } from "../../../shared/errors.ts";
import { isOperationId } from "../../../shared/identifiers.ts";
import { pageOptionsSchema } from "../../../shared/page.ts";
import { checkPrincipal, type Principal } from "../../../shared/principal.ts";
import { redactSecrets, withoutSecrets } from "../../../shared/redact.ts";
import { toIso } from "../../../shared/time.ts";
import { fitsUtf8 } from "../../../shared/utf8.ts";
import { MAX_SHOWN_BODY_BYTES } from "./mailbox-limits.ts";

/** An envelope after its last attempt. */
export interface DeadLetter {
  envelope: Envelope;
  status: "failed" | "unknown";
  error: ErrorData;
  /** The number of the newest attempt. A redelivery continues from it. */
  attempt: number;
  unanswered: boolean;
  /** Milliseconds since the epoch. */
  diedAt: number;
  /** The arrival time of a late result. */
  repliedAt?: number;
}

/** The options of a page of dead letters. The cursor is the last letter's operation id. */
export const deadLetterPageSchema = pageOptionsSchema(isOperationId);

/** Throws unless the principal may see and redeliver the dead letters of the actor with this address and name. */
export function checkOperator(principal: Principal, address: ActorAddress | null, name: string): void {
  checkPrincipal(principal);
  if (address === null || address.tenant !== principal.tenant) throw notFound(`There is no actor "${name}".`);
  requireOperator(principal);
}

export function deadLetterView(letter: DeadLetter): DeadLetterView {
  const { envelope, status, error, attempt, diedAt, repliedAt } = letter;
  const { operationId, type, from, to, inReplyTo, body, sentAt } = envelope;
  const isShown = fitsUtf8(JSON.stringify(body), MAX_SHOWN_BODY_BYTES);
  return {
    id: operationId,
    status,
    type,
    from,
    to,
    ...defined({ inReplyTo }),
    error: errorView(error),
    attempts: attempt,
    body: isShown ? withoutSecrets(body) : null,
    sentAt: toIso(sentAt),
    diedAt: toIso(diedAt),
    ...(repliedAt === undefined ? {} : { repliedAt: toIso(repliedAt) }),
  };
}

function errorView({ errors, ...error }: ErrorData): ErrorData {
  const issues = errors?.map(({ path, message }) => ({
    path: redactSecrets(path),
    message: redactSecrets(message),
  }));
  return { ...error, message: redactSecrets(error.message), ...defined({ errors: issues }) };
}
