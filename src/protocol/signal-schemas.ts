/** Schemas of signals in their envelopes, and of the answers to them. */
import { z } from "zod";
import { wireError } from "./move-schemas.ts";
import { ids } from "./scalars.ts";

/** The types of signals that clients may send: a user's message, a stop, a resume. */
export const EXTERNAL_TYPES = [
  "conversation.user.message",
  "conversation.cancel",
  "conversation.resume",
] as const;

const members = z.record(z.string(), z.unknown());

/** The conversation itself checks envelopes, so its answers name the problems of each. */
export const signalEnvelope = z
  .object({
    id: z
      .string()
      .exactOptional()
      .describe("The idempotency key. The same id with the same correlation id is applied once."),
    type: z.enum(EXTERNAL_TYPES),
    source: z.string().exactOptional().describe("A URI reference of the sender. Accepted and not kept."),
    time: z
      .string()
      .exactOptional()
      .describe("ISO 8601. Accepted and not kept: the journal has the time of the receipt."),
    data: members
      .exactOptional()
      .describe(
        "The payload. For a message: as the body of `POST …/turns`. For a stop: `{turnId?, reason?}`. Without `turnId` the whole conversation stops. For a resume: `{reason?}`.",
      ),
    meta: members.nullable().exactOptional().describe("Overrides the members of `extensions`."),
    extensions: members
      .nullable()
      .exactOptional()
      .describe(
        "`correlation_id` is kept with everything that follows from the signal. A missing or blank one is replaced by a new id.",
      ),
    specversion: z.string().exactOptional(),
  })
  .meta({ id: "Signal" });

/** A signal in the envelope that clients send. The members of the CloudEvents standard have their meaning there. */
export type SignalEnvelope = z.infer<typeof signalEnvelope>;

const correlationId = z.string().describe("The id that all work that follows from the signal shares.");

export const acceptedSignal = z
  .union([
    /** The message started a turn, now or before; `failed` as in `StartedTurn`. */
    z.strictObject({
      status: z.enum(["started", "failed"]),
      correlationId,
      turnId: ids.turn,
      messageId: ids.message,
      from: z.int().min(0).describe("Number of the journal entry before the turn's first."),
      repeated: z.boolean().describe("The message had started this turn before."),
    }),
    /** The message is stored. It starts its turn after the earlier messages. */
    z.strictObject({ status: z.literal("queued"), correlationId: correlationId.exactOptional() }),
    /** The stop or the resume is done, now or before. */
    z.strictObject({ status: z.literal("applied"), correlationId }),
  ])
  .meta({ id: "AcceptedSignal" });

/** A signal that was accepted. */
export type AcceptedSignal = z.infer<typeof acceptedSignal>;

export const signalResults = z
  .strictObject({
    results: z.array(
      z.union([
        z.strictObject({ ok: z.literal(true), value: acceptedSignal }),
        z.strictObject({ ok: z.literal(false), error: wireError.loose() }),
      ]),
    ),
  })
  .meta({ id: "SignalResults" });
