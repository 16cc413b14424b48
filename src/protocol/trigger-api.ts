/** The RPC interface of `Trigger`, the actor of a trigger, and what it shows. */
import { z } from "zod";
import { type Content, contentSchema } from "../shared/content.ts";
import type { Result } from "../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import { CONVERSATION_ID, type DefinitionReference, TRIGGER_ID } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";
import type { Jurisdiction } from "../shared/location.ts";
import type { Principal } from "../shared/principal.ts";
import { startFields } from "./coordinator-api.ts";

/** When a trigger fires: once at a time, by a cron expression, or at each delivery to its webhook. */
export type TriggerWhen =
  /** ISO 8601. */
  | { at: string }
  /** `timeZone` is a name of the IANA database; UTC when absent. */
  | { cron: string; timeZone?: string }
  | { webhook: true };

/** The target of a trigger: it starts a run of a workflow, or a turn of a conversation. */
export type TriggerStarts =
  | { workflow: DefinitionReference; input?: JsonObject; projectId?: string }
  /** Only a webhook may leave out `content`. `to` and `untrusted` are as in a request for a turn. */
  | { conversationId: string; content?: Content; to?: string; untrusted?: true };

/** The run or the turn that a trigger has started. */
export type TriggerStarted = { runId: string } | { conversationId: string; turnId: string };

export interface CreateTrigger {
  /** The id of the trigger, by which everybody finds its actor. */
  id: string;
  when: TriggerWhen;
  starts: TriggerStarts;
  /** `true` when absent. */
  enabled?: boolean;
}

/** A change of a trigger. Members that are absent stay. */
export type ChangeTrigger = Partial<Omit<CreateTrigger, "id">>;

/** The last failure of a trigger. */
export interface TriggerError {
  code: string;
  message: string;
  /** ISO 8601, UTC. */
  at: string;
}

/** A trigger. Times are ISO 8601 in UTC. */
export interface TriggerView {
  id: string;
  jurisdiction?: Jurisdiction;
  when: TriggerWhen;
  starts: TriggerStarts;
  enabled: boolean;
  /** The subject that created it. */
  createdBy: string;
  /** The subject that changed it last: runs and turns begin as this subject, without roles. */
  actsAs: string;
  createdAt: string;
  updatedAt: string;
  /** The next time; absent where there is none, and while the trigger is not enabled. */
  nextAt?: string;
  /** A time that has come and whose start has not succeeded yet. */
  due?: { scheduledAt: string; attempts: number };
  /** The last start that succeeded. */
  lastFiredAt?: string;
  lastStarted?: TriggerStarted;
  /** The last failure; absent after a start that succeeded. */
  lastError?: TriggerError;
  /** The path to which deliveries are posted. */
  hook?: string;
}

/** A trigger in a list: what it starts without its input or content, and nothing of its times. */
export type TriggerSummary = Pick<
  TriggerView,
  "id" | "jurisdiction" | "when" | "enabled" | "createdBy" | "actsAs" | "createdAt" | "updatedAt"
> & { starts: { workflow: DefinitionReference } | { conversationId: string } };

/** A trigger, with the secret of its webhook, which is shown only once. */
export type TriggerWithSecret = TriggerView & { secret?: string };

/** A delivery, as the door of the API reads it. */
export interface Delivery {
  /** The sender's id of it: 1 to 128 letters, digits, `_` and `-`. */
  id: string;
  /** The time in the header, in seconds since the epoch. */
  time: number;
  /** 64 hexadecimal digits. */
  signature: string;
  body: Uint8Array;
  /** The place of the delivery in a trace. */
  traceparent?: string;
}

export const triggerIdSchema = z.string().regex(TRIGGER_ID, "Must be `trig_` and a ULID.");

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

/** The members of a request that creates a trigger, beside its id. */
export const triggerFields = {
  when: whenSchema,
  starts: startsSchema,
  enabled: z.boolean().exactOptional(),
};

/** The members of a request that changes a trigger. */
export const triggerChanges = {
  when: whenSchema.exactOptional(),
  starts: startsSchema.exactOptional(),
  enabled: z.boolean().exactOptional(),
};

export interface TriggerApi {
  /**
   * Creates the trigger. Throws `INVALID_INPUT` for a time or a start that cannot be, `NOT_FOUND` for a workflow or a conversation that does
   * not exist for the principal, `CONFLICT` if the trigger exists, `FORBIDDEN` without the role of an author.
   */
  create(principal: Principal, input: CreateTrigger): Promise<Result<TriggerWithSecret>>;
  view(principal: Principal): Promise<Result<TriggerView>>;
  /** Changes the trigger, which acts as this principal from then on, unless the change only disables it. Throws as `create`. */
  update(principal: Principal, change: ChangeTrigger): Promise<Result<TriggerView>>;
  /** Replaces the secret of the webhook; the old one ends at once. The trigger acts as this principal from then on. */
  rotate(principal: Principal): Promise<Result<TriggerWithSecret>>;
  /** Deletes the trigger and its actor's storage. What it has started goes on. Call it by `removeTrigger`. */
  remove(principal: Principal): Promise<Result<null>>;
  /**
   * Takes a delivery and starts what the trigger starts. Repeating the delivery answers the same. `NOT_FOUND` for an unknown trigger and
   * for a delivery that is not signed as it must be. Call it by `deliverTo`.
   */
  deliver(delivery: Delivery): Promise<Result<TriggerStarted>>;
}
