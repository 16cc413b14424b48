/** Checks of envelopes, attempts, answers and the size of errors between mailboxes. */
import { z } from "zod";
import {
  type ActorAddress,
  addressKey,
  ageOf,
  type Envelope,
  envelopeSchema,
  type NewEnvelope,
  sameAddress,
  sentEnvelopeSchema,
} from "../../../protocol/envelope.ts";
import type { Attempt } from "../../../protocol/mailbox-api.ts";
import { defined } from "../../../shared/defined.ts";
import { type ErrorData, invalid, notFound, tooLarge } from "../../../shared/errors.ts";
import { canonicalJson, isJson, type Json } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { validate } from "../../../shared/validation.ts";
import {
  MAX_CLOCK_AHEAD_MS,
  MAX_ENVELOPE_BYTES,
  MAX_ERROR_CHARACTERS,
  MAX_ERROR_ISSUES,
  MAX_ISSUE_CHARACTERS,
  SEND_WITHIN_MS,
} from "./mailbox-limits.ts";

/** Returns a copy of the envelope to send, and its size in bytes. Throws `INVALID_INPUT` or `TOO_LARGE`. */
export function checkOutgoing(
  fields: NewEnvelope,
  from: ActorAddress,
  now: number,
): { envelope: Envelope; size: number } {
  const given = { ...fields, from, sentAt: now };
  const envelope: Envelope = validate(sentEnvelopeSchema, given, "", "The envelope");
  if (sameAddress(from, envelope.to))
    throw invalid("An actor cannot send an envelope to itself; do the work in the current transaction.");
  const age = ageOf(envelope.operationId, now);
  if (age > SEND_WITHIN_MS || age < -MAX_CLOCK_AHEAD_MS)
    throw invalid("The operation id is older than 14 days or in the future. Send under a new operation id.");
  const text = JSON.stringify(envelope);
  return { envelope: JSON.parse(text), size: checkSize(text) };
}

/** An attempt as a receiver reads it, without the unknown members of newer releases. */
const attemptSchema = z.object({ number: z.int().min(1), last: z.boolean() });

/** Returns an incoming envelope and its attempt. Throws `INVALID_INPUT`, `NOT_FOUND` or `TOO_LARGE`. */
export function checkIncoming(
  input: unknown,
  attemptInput: unknown,
  self: ActorAddress | null,
): { envelope: Envelope; attempt: Attempt } {
  const envelope: Envelope = validate(envelopeSchema, input, "", "The envelope");
  const attempt = validate(attemptSchema, attemptInput, "", "The attempt");
  if (self === null || !sameAddress(envelope.to, self)) {
    const { kind, id } = envelope.to;
    throw notFound(
      `The envelope is addressed to the ${kind} "${id}", not to this actor. Deliver it to the actor in \`to\`.`,
    );
  }
  checkSize(JSON.stringify(envelope));
  return { envelope, attempt };
}

function checkSize(text: string): number {
  const size = utf8Length(text);
  if (size <= MAX_ENVELOPE_BYTES) return size;
  throw tooLarge(
    `The envelope has ${size} bytes, the limit is ${MAX_ENVELOPE_BYTES}; send a reference instead.`,
  );
}

/** Reports whether two envelopes under one operation id have the same content. */
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

/** Returns an error that fits into one row beside an envelope. */
export function boundedError({ code, message, retriable, errors }: ErrorData): ErrorData {
  const issues = errors?.slice(0, MAX_ERROR_ISSUES).map((issue) => ({
    path: cut(issue.path, MAX_ISSUE_CHARACTERS),
    message: cut(issue.message, MAX_ISSUE_CHARACTERS),
  }));
  return { code, message: cut(message, MAX_ERROR_CHARACTERS), retriable, ...defined({ errors: issues }) };
}

const errorSchema = z
  .object({
    code: z.string().max(100),
    message: z.string(),
    retriable: z.boolean(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).exactOptional(),
  })
  .transform(boundedError);

/** A receiver's answer as its sender reads it. */
export const answerSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("done"), result: z.custom<Json>(isJson) }),
  z.object({ type: z.literal("refused"), error: errorSchema, recorded: z.boolean() }),
  z.object({
    type: z.literal("busy"),
    error: errorSchema,
    retryAfterMs: z.number().min(0).exactOptional(),
  }),
]);
