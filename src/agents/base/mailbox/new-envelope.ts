/** What may be sent, checked before it is written. */

import {
  type ActorAddress,
  addressKey,
  ageOf,
  type Envelope,
  type NewEnvelope,
  sameAddress,
  sentEnvelopeSchema,
} from "../../../protocol/envelope.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../shared/json.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { validate } from "../../../shared/validation.ts";
import { MAX_CLOCK_AHEAD_MS, MAX_ENVELOPE_BYTES, SEND_WITHIN_MS } from "./limits.ts";

/** The envelope, a copy of its own as it is stored, and its size in bytes. Throws `INVALID_INPUT` or `TOO_LARGE`. */
export function checkedEnvelope(
  fields: NewEnvelope,
  from: ActorAddress,
  now: number,
): { envelope: Envelope; size: number } {
  const given = { ...fields, from, sentAt: now };
  const envelope: Envelope = validate(sentEnvelopeSchema, given, "", "The envelope");
  if (sameAddress(from, envelope.to)) {
    throw new DramatisError(
      "INVALID_INPUT",
      "An actor sends no envelope to itself: do it in the transaction at hand.",
    );
  }
  const age = ageOf(envelope.operationId, now);
  if (age > SEND_WITHIN_MS || age < -MAX_CLOCK_AHEAD_MS) {
    throw new DramatisError(
      "INVALID_INPUT",
      "The operation id is older than 14 days, or from the future: send under a new one.",
    );
  }
  const text = JSON.stringify(envelope);
  const size = utf8Length(text);
  if (size > MAX_ENVELOPE_BYTES) {
    throw new DramatisError(
      "TOO_LARGE",
      `An envelope may have ${MAX_ENVELOPE_BYTES} bytes, this one has ${size}: send a reference.`,
    );
  }
  return { envelope: JSON.parse(text), size };
}

/** Whether two envelopes under one operation id say the same. */
export function sameContent(one: Envelope, other: Envelope): boolean {
  const content = ({ to, type, body, inReplyTo, context }: Envelope): Json => [
    addressKey(to),
    type,
    body,
    inReplyTo ?? null,
    context ?? null,
  ];
  return canonicalJson(content(one)) === canonicalJson(content(other));
}
