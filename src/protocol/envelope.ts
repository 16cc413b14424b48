/**
 * Envelopes between actors, with the schemas for both sides.
 *
 * MAIL-1  An operation id is `op_` and a ULID. It identifies one envelope permanently. Its time is the start of the
 *         envelope's age, so no other record is needed.
 * MAIL-2  Sender and receiver have the same tenant.
 */
import { decodeTime, encodeTime } from "ulid";
import { z } from "zod";
import { isOperationId } from "../shared/identifiers.ts";
import { isJson, JSON_RULE, type Json, type JsonObject, UNICODE_RULE } from "../shared/json.ts";

/** The sender or receiver of an envelope: the actor named `{tenant}:{id}` in the namespace of its kind. */
export interface ActorAddress {
  /** The actor's class in kebab case: `conversation`, `agent`, `coordinator`, … */
  kind: string;
  tenant: string;
  id: string;
}

/** A message from one actor to another. */
export interface Envelope {
  operationId: string;
  from: ActorAddress;
  to: ActorAddress;
  /** Selects the receiver's handler, such as `conversation.opened`. */
  type: string;
  body: Json;
  /** The operation that this envelope answers. */
  inReplyTo?: string;
  /** The execution context: tenant, project, conversation or run, trace parent. */
  context?: JsonObject;
  /** Milliseconds since the epoch, by the sender's clock. */
  sentAt: number;
}

/** An envelope to send; the mailbox adds the sender and the time. */
export type NewEnvelope = Omit<Envelope, "from" | "sentAt">;

/** Characters of a ULID that encode its time. */
const TIME_LENGTH = 10;

const operationId = z.string().refine(isOperationId, "Must be `op_` and a ULID.");

const address = {
  kind: z
    .string()
    .regex(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/)
    .max(64),
  tenant: z
    .string()
    .min(1)
    .max(200)
    .refine((text) => text.isWellFormed(), UNICODE_RULE),
  id: z.string().regex(/^[A-Za-z0-9._-]{1,200}$/),
};

const content = {
  operationId,
  type: z
    .string()
    .regex(/^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*$/)
    .max(100),
  body: z.custom<Json>(isJson, JSON_RULE),
  inReplyTo: operationId.exactOptional(),
  context: z.record(z.string(), z.custom<Json>(isJson, JSON_RULE)).exactOptional(),
  sentAt: z.int().min(0),
};

const staysWithinTenant = ({ from, to }: Pick<Envelope, "from" | "to">) => from.tenant === to.tenant;
const TENANT_RULE = { path: ["to", "tenant"], message: "An envelope stays within its tenant." };

/** The sender's schema of an envelope. */
export const sentEnvelopeSchema = z
  .strictObject({ ...content, from: z.strictObject(address), to: z.strictObject(address) })
  .refine(staysWithinTenant, TENANT_RULE);

/** The receiver's schema of an envelope: it drops unknown members, which a newer release may send. */
export const envelopeSchema = z
  .object({ ...content, from: z.object(address), to: z.object(address) })
  .refine(staysWithinTenant, TENANT_RULE);

/** Returns the age of an operation in milliseconds; negative if its id is ahead of `now`. */
export function ageOf(id: string, now: number): number {
  return now - decodeTime(id.slice("op_".length));
}

/** Returns the smallest operation id of a time. */
export function firstOperationId(time: number): string {
  return `op_${encodeTime(time, TIME_LENGTH)}`;
}

export function sameAddress(one: ActorAddress, other: ActorAddress): boolean {
  return one.kind === other.kind && one.tenant === other.tenant && one.id === other.id;
}

/** Returns an address as a text, unique per address. */
export function addressKey({ kind, tenant, id }: ActorAddress): string {
  return `${kind}:${tenant}:${id}`;
}
