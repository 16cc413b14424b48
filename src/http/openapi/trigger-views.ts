/** Schemas of triggers. */
import { z } from "zod";
import { startFields } from "../../protocol/coordinator-api.ts";
import { count, ids, runId, time } from "../../protocol/scalars.ts";
import {
  type TriggerStarted,
  type TriggerSummary,
  type TriggerView,
  type TriggerWithSecret,
  triggerFields,
} from "../../protocol/trigger-api.ts";
import { TRIGGER_ID } from "../../shared/identifiers.ts";
import { JURISDICTIONS } from "../../shared/location.ts";

export const triggerId = z
  .string()
  .regex(TRIGGER_ID)
  .meta({ description: "Id of a trigger.", example: "trig_01JD0000000000000000000000" });

export const started: z.ZodType<TriggerStarted> = z
  .union([z.strictObject({ runId }), z.strictObject({ conversationId: ids.conversation, turnId: ids.turn })])
  .meta({ id: "TriggerStarted", description: "The run or the turn that a trigger has started." });

const fields = {
  id: triggerId,
  jurisdiction: z.exactOptional(z.enum(JURISDICTIONS)),
  when: triggerFields.when,
  starts: triggerFields.starts,
  enabled: z.boolean(),
  createdBy: z.string().meta({ description: "The subject that created it." }),
  actsAs: z.string().meta({
    description: "The subject that changed it last. Runs and turns begin as this subject, without roles.",
  }),
  createdAt: time,
  updatedAt: time,
  nextAt: z.exactOptional(time),
  due: z.exactOptional(
    z
      .strictObject({ scheduledAt: time, attempts: count })
      .meta({ description: "A time that has come and whose start has not succeeded yet." }),
  ),
  lastFiredAt: z.exactOptional(time),
  lastStarted: z.exactOptional(started),
  lastError: z.exactOptional(
    z
      .strictObject({ code: z.string(), message: z.string(), at: time })
      .meta({ description: "The last failure; absent after a start that succeeded." }),
  ),
  hook: z.exactOptional(z.string().meta({ description: "The path to which deliveries are posted." })),
};

export const trigger: z.ZodType<TriggerView> = z
  .strictObject(fields)
  .meta({ id: "Trigger", description: "Starts a run or a turn at a time, by cron, or by a webhook." });

export const triggerSummary: z.ZodType<TriggerSummary> = z
  .strictObject({
    id: fields.id,
    jurisdiction: fields.jurisdiction,
    when: fields.when,
    starts: z.union([
      z.strictObject({ workflow: startFields.workflow }),
      z.strictObject({ conversationId: ids.conversation }),
    ]),
    enabled: fields.enabled,
    createdBy: fields.createdBy,
    actsAs: fields.actsAs,
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: "TriggerSummary", description: "A trigger in a list." });

export const triggerWithSecret: z.ZodType<TriggerWithSecret> = z
  .strictObject({
    ...fields,
    secret: z.exactOptional(
      z.string().meta({ description: "Of a webhook: the key of its signatures. It is shown only here." }),
    ),
  })
  .meta({ id: "TriggerWithSecret" });
