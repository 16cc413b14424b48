/** The schemas of the answers to signals. */
import { z } from "zod";
import { wireError } from "../../protocol/move-schemas.ts";
import { ids } from "../../protocol/scalars.ts";
import type { AcceptedSignal, SignalResult } from "../../protocol/signals.ts";

const correlationId = z
  .string()
  .meta({ description: "The id that all work that follows from the signal shares." });

export const acceptedSignal: z.ZodType<AcceptedSignal> = z
  .union([
    z.strictObject({
      status: z.enum(["started", "failed"]),
      correlationId,
      turnId: ids.turn,
      messageId: ids.message,
      from: z.int().min(0).meta({ description: "Number of the journal entry before the turn's first." }),
      repeated: z.boolean().meta({ description: "The message had started this turn before." }),
    }),
    z.strictObject({ status: z.literal("queued"), correlationId: correlationId.exactOptional() }),
    z.strictObject({ status: z.literal("applied"), correlationId }),
  ])
  .meta({ id: "AcceptedSignal" });

const signalResult: z.ZodType<SignalResult> = z.union([
  z.strictObject({ ok: z.literal(true), value: acceptedSignal }),
  z.strictObject({ ok: z.literal(false), error: wireError.loose() }),
]) as z.ZodType<SignalResult>;

export const signalResults = z.strictObject({ results: z.array(signalResult) }).meta({ id: "SignalResults" });
