/** The RPC interface and the views of `Trigger`, the actor of a trigger. */
import { z } from "zod";
import { contentSchema } from "../shared/content.ts";
import type { Result } from "../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import { CONVERSATION_ID, TRIGGER_ID } from "../shared/identifiers.ts";
import { JURISDICTIONS } from "../shared/location.ts";
import type { Principal } from "../shared/principal.ts";
import { startFields } from "./coordinator-api.ts";
import { locationFields } from "./location-policy.ts";
import { count, ids, runId, time } from "./scalars.ts";

/** A delivery, as the API reads it. */
export interface Delivery {
  /** The sender's id of it: 1 to 128 letters, digits, `_` and `-`. */
  id: string;
  /** The time in the header, in seconds since the epoch. */
  time: number;
  /** 64 hexadecimal digits. */
  signature: string;
  body: Uint8Array;
  traceparent?: string;
}

const triggerIdSchema = z.string().regex(TRIGGER_ID, "Must be `trig_` and a ULID.");

const whenSchema = z.union(
  [
    z.strictObject({
      at: z.iso
        .datetime({ offset: true, error: "Must be a time in ISO 8601." })
        .meta({ description: "ISO 8601, in the future.", example: "2026-03-01T10:00:00+01:00" }),
    }),
    z.strictObject({
      cron: z.string().min(1).max(200).meta({
        description: "Minute, hour, day of the month, month, day of the week.",
        example: "30 6 * * mon-fri",
      }),
      timeZone: z.string().min(1).max(64).exactOptional().meta({
        description: "A name of the IANA database. Default: `UTC`.",
        example: "Europe/Berlin",
      }),
    }),
    z.strictObject({ webhook: z.literal(true) }),
  ],
  "Give `at`, `cron` with or without `timeZone`, or `webhook: true`.",
);

/** When a trigger fires: once at a time, by a cron expression, or at each delivery to its webhook. */
export type TriggerWhen = z.infer<typeof whenSchema>;

const startsSchema = z.union(
  [
    z.strictObject({
      workflow: startFields.workflow,
      input: startFields.input,
      projectId: definitionIdSchema.exactOptional(),
    }),
    z.strictObject({
      conversationId: z
        .string()
        .regex(CONVERSATION_ID, "Must be the id of a conversation.")
        .meta({ example: "conv_01JD0000000000000000000000" }),
      content: contentSchema.exactOptional(),
      to: agentIdSchema.exactOptional(),
    }),
  ],
  "Give `workflow`, or `conversationId`.",
);

type Starts = z.infer<typeof startsSchema>;

/** The target of a trigger: it starts a run of a workflow, or a turn of a conversation. A delivery to a webhook sets `untrusted`. */
export type TriggerStarts =
  | Extract<Starts, { workflow: unknown }>
  | (Extract<Starts, { conversationId: string }> & { untrusted?: true });

/** The members of a request that creates a trigger, without its id. */
const triggerFields = {
  when: whenSchema,
  starts: startsSchema,
  enabled: z.boolean().exactOptional().describe("`false` disables the trigger. Default: `true`."),
};

/** The body of `createTrigger`. */
export const newTrigger = z.strictObject({ ...triggerFields, ...locationFields });

/** A request for a new trigger by RPC. Its actor has the name of the id. */
export const createTrigger = z.strictObject({ id: triggerIdSchema, ...triggerFields });

export type CreateTrigger = z.infer<typeof createTrigger>;

/** A change of a trigger. Members that are absent stay. */
export const changeTrigger = z
  .strictObject({
    when: whenSchema.exactOptional(),
    starts: startsSchema.exactOptional(),
    enabled: z.boolean().exactOptional(),
  })
  .refine((change) => Object.keys(change).length > 0, "Give `when`, `starts` or `enabled`.");

export type ChangeTrigger = z.infer<typeof changeTrigger>;

export const triggerId = z
  .string()
  .regex(TRIGGER_ID)
  .meta({ description: "Id of a trigger.", example: "trig_01JD0000000000000000000000" });

/** The run or the turn that a trigger has started. */
export const started = z
  .union([z.strictObject({ runId }), z.strictObject({ conversationId: ids.conversation, turnId: ids.turn })])
  .meta({ id: "TriggerStarted", description: "The run or the turn that a trigger has started." });

export type TriggerStarted = z.infer<typeof started>;

const fields = {
  id: triggerId,
  jurisdiction: z.enum(JURISDICTIONS).exactOptional(),
  when: whenSchema,
  starts: startsSchema,
  enabled: z.boolean(),
  createdBy: z.string().describe("The subject that created it."),
  actsAs: z
    .string()
    .describe("The subject that changed it last. Runs and turns begin as this subject, without roles."),
  createdAt: time,
  updatedAt: time,
  nextAt: time.exactOptional(),
  due: z
    .strictObject({ scheduledAt: time, attempts: count })
    .describe("A due time without a successful start yet.")
    .exactOptional(),
  lastFiredAt: time.exactOptional(),
  lastStarted: started.exactOptional(),
  lastError: z
    .strictObject({ code: z.string(), message: z.string(), at: time })
    .describe("The last failure; absent after a start that succeeded.")
    .exactOptional(),
  webhookPath: z.string().describe("The path for deliveries.").exactOptional(),
};

export const trigger = z
  .strictObject(fields)
  .meta({ id: "Trigger", description: "Starts a run or a turn at a time, by cron, or by a webhook." });

/** A trigger. Times are ISO 8601 in UTC. */
export type TriggerView = z.infer<typeof trigger>;

export const triggerSummary = z
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

/** A trigger in a list, without input, content and times. */
export type TriggerSummary = z.infer<typeof triggerSummary>;

export const triggerWithSecret = z
  .strictObject({
    ...fields,
    secret: z
      .string()
      .describe("For a webhook: the key of its signatures. It is shown only once.")
      .exactOptional(),
  })
  .meta({ id: "TriggerWithSecret" });

/** A trigger with the secret of its webhook. Only this answer has the secret. */
export type TriggerWithSecret = z.infer<typeof triggerWithSecret>;

export interface TriggerApi {
  /**
   * Creates the trigger. Throws `INVALID_INPUT` for an impossible time or start, `NOT_FOUND` for a workflow or a
   * conversation that does not exist for the principal, `CONFLICT` if the trigger exists, `FORBIDDEN` without the
   * role of an author.
   */
  create(principal: Principal, input: CreateTrigger): Promise<Result<TriggerWithSecret>>;
  view(principal: Principal): Promise<Result<TriggerView>>;
  /** Changes the trigger. It then acts as this principal, unless the change only disables it. Throws like `create`. */
  update(principal: Principal, change: ChangeTrigger): Promise<Result<TriggerView>>;
  /** Replaces the secret of the webhook. The old secret becomes invalid at once. The trigger then acts as this principal. */
  rotate(principal: Principal): Promise<Result<TriggerWithSecret>>;
  /** Deletes the trigger and its actor's storage. Started runs and turns continue. Call it by `removeTrigger`. */
  remove(principal: Principal): Promise<Result<null>>;
  /**
   * Takes a delivery and starts the trigger's target. Repeating the delivery answers the same. `NOT_FOUND` for an unknown trigger and
   * for a delivery that is not signed as it must be. Call it by `deliverTo`.
   */
  deliver(delivery: Delivery): Promise<Result<TriggerStarted>>;
}
