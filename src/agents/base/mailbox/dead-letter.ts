/**
 * What is kept, and shown, of an envelope that was not delivered.
 *
 * DEAD-1  What is shown carries no secret: values under names of secrets and texts that look like keys are taken out.
 */

import type { Envelope } from "../../../protocol/envelope.ts";
import type { DeadLetterView } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { redactSecrets } from "../../../shared/redact.ts";
import { fitsUtf8 } from "../../../shared/utf8.ts";
import { MAX_SHOWN_BODY_BYTES } from "./limits.ts";

/** An envelope whose last attempt is over, as its sender keeps it. */
export interface DeadLetter {
  envelope: Envelope;
  status: "failed" | "unknown";
  error: ErrorData;
  /** The newest attempt's number: a redelivery goes on from it. */
  attempt: number;
  unanswered: boolean;
  /** Milliseconds since the epoch. */
  diedAt: number;
  /** When a result of it came after all. */
  repliedAt?: number;
}

export function deadLetterView(letter: DeadLetter): DeadLetterView {
  const { envelope, status, error, attempt, diedAt, repliedAt } = letter;
  const { operationId, type, from, to, inReplyTo, body, sentAt } = envelope;
  const shown = fitsUtf8(JSON.stringify(body), MAX_SHOWN_BODY_BYTES);
  return {
    id: operationId,
    status,
    type,
    from,
    to,
    ...defined({ inReplyTo }),
    error: errorView(error),
    attempts: attempt,
    body: shown ? withoutSecrets(body) : null,
    sentAt: iso(sentAt),
    diedAt: iso(diedAt),
    ...(repliedAt === undefined ? {} : { repliedAt: iso(repliedAt) }),
  };
}

function errorView({ errors, ...error }: ErrorData): ErrorData {
  const issues = errors?.map(({ path, message }) => ({
    path: redactSecrets(path),
    message: redactSecrets(message),
  }));
  return {
    ...error,
    message: redactSecrets(error.message),
    ...defined({ errors: issues }),
  };
}

const SECRET_NAME = /secret|token|passw|api[-_]?key|private[-_]?key|authorization|credential|cookie/i;

/** The same value with values under names of secrets, and texts that look like keys, replaced. */
function withoutSecrets(value: Json): Json {
  if (typeof value === "string") return redactSecrets(value);
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      SECRET_NAME.test(name) ? "[redacted]" : withoutSecrets(member),
    ]),
  );
}

function iso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
