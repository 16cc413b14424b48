/**
 * What travels between actors, and how it is checked on both sides.
 *
 * MAIL-1  An operation id is `op_` and a ULID. It names one envelope for ever, and carries the time that its age is
 *         counted from: whoever sees it later needs no other record to tell how old it is.
 * MAIL-2  Sender and receiver have the same tenant.
 */
import { decodeTime, encodeTime } from "ulid";
import { z } from "zod";
import { isOperationId } from "../shared/identifiers.ts";
import { isJson, type Json, type JsonObject } from "../shared/json.ts";

/** Whom an envelope is from or for. An actor is named `{tenant}:{id}` in the namespace of its kind. */
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
  /** Which of the receiver's handlers it is for, such as `conversation.opened`. */
  type: string;
  body: Json;
  /** The operation whose result this is. */
  inReplyTo?: string;
  /** The execution context: tenant, project, conversation or run, trace parent. */
  context?: JsonObject;
  /** Milliseconds since the epoch, by the sender's clock. */
  sentAt: number;
}

/** What a caller gives to send one; the mailbox adds who sends, and when. */
export type NewEnvelope = Omit<Envelope, "from" | "sentAt">;

/** Characters of a ULID that encode its time. */
const TIME_LENGTH = 10;

const operationId = z.string().refine(isOperationId, "Must be `op_` and a ULID.");
const wellFormed = (text: string) => text.isWellFormed();

const address = {
  kind: z
    .string()
    .regex(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/)
    .max(64),
  tenant: z.string().min(1).max(200).refine(wellFormed, "Must be well-formed Unicode."),
  id: z.string().regex(/^[A-Za-z0-9._-]{1,200}$/),
};

const content = {
  operationId,
  type: z
    .string()
    .regex(/^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*$/)
    .max(100),
  body: z.custom<Json>(isJson, "Must be JSON, nested at most 64 deep."),
  inReplyTo: z.exactOptional(operationId),
  context: z.exactOptional(z.record(z.string(), z.custom<Json>(isJson, "Must be JSON."))),
  sentAt: z.int().min(0),
};

const staysWithinTenant = ({ from, to }: Pick<Envelope, "from" | "to">) => from.tenant === to.tenant;
const TENANT_RULE = { path: ["to", "tenant"], message: "An envelope stays within its tenant." };

/** An envelope to be sent. */
export const sentEnvelopeSchema = z
  .strictObject({ ...content, from: z.strictObject(address), to: z.strictObject(address) })
  .refine(staysWithinTenant, TENANT_RULE);

/** An envelope as a receiver reads it: members that it does not know, a newer release's, are left out. */
export const envelopeSchema = z
  .object({ ...content, from: z.object(address), to: z.object(address) })
  .refine(staysWithinTenant, TENANT_RULE);

/** Milliseconds since the operation's id was made; negative if the id is ahead of `now`. */
export function ageOf(id: string, now: number): number {
  return now - decodeTime(id.slice("op_".length));
}

/** The smallest operation id of a time. */
export function firstOperationId(time: number): string {
  return `op_${encodeTime(time, TIME_LENGTH)}`;
}

export function sameAddress(one: ActorAddress, other: ActorAddress): boolean {
  return one.kind === other.kind && one.tenant === other.tenant && one.id === other.id;
}

/** One text per address. */
export function addressKey({ kind, tenant, id }: ActorAddress): string {
  return `${kind}:${tenant}:${id}`;
}
