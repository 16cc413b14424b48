/**
 * The one door: everything that reaches a conversation is a signal. Outside sends `conversation.user.message`; effects
 * report what became of them through the same door.
 *
 * SIGNAL-1  Only external types are accepted from outside, in an envelope whose payload is `data`.
 */

import { z } from "zod";
import type { ModelError } from "../../../model/error.ts";
import type { ModelReply, RateLimitFeedback } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { StartTurn } from "../../../protocol/conversation-api.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import { outputSchema, type ToolOutcome } from "../../../protocol/requests.ts";
import type { Caller } from "../../../protocol/views.ts";
import { contentSchema } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, type ErrorData } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";

/** A user's message, ready to start a turn. */
export interface UserMessage {
  type: "conversation.user.message";
  /** The idempotency key as supplied; absent if the client sent none. */
  id?: string;
  caller: Caller;
  data: Omit<StartTurn, "idempotencyKey">;
}

/** The message of a user who starts a turn. */
export function messageOf({ subject }: Principal, { idempotencyKey, ...data }: StartTurn): UserMessage {
  return {
    type: "conversation.user.message",
    ...defined({ id: idempotencyKey }),
    caller: { type: "user", userId: subject },
    data,
  };
}

/** What is known of one attempt of a model call beside what came of it. Times are milliseconds since the epoch. */
export interface AttemptFacts {
  startedAt: number;
  finishedAt: number;
  firstTextAt?: number;
  /** The HTTP status, where there was one. */
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  /** What the provider had counted, also where the attempt failed afterwards. */
  usage?: TokenUsage;
  /** Only where a limit was reached. */
  rateLimit?: RateLimitFeedback;
}

/** What an effect reports, addressed to the turn (and attempt) that asked for it. */
export type EffectSignal =
  | {
      type: "conversation.llm.completed";
      turn: number;
      item: number;
      attempt: number;
      reply: ModelReply;
      facts: AttemptFacts;
    }
  | {
      type: "conversation.llm.failed";
      turn: number;
      item: number;
      attempt: number;
      error: ModelError;
      facts: AttemptFacts;
      /** Whether text had been shown: then it must be taken back. */
      streamed: boolean;
    }
  | { type: "conversation.tool.completed"; turn: number; item: number; result: ToolResult };

/** A client's result of a tool that it runs. */
export interface ClientResult {
  type: "conversation.tool.submitted";
  turn: number;
  item: number;
  outcome: ToolOutcome;
}

/** What a client has not answered in time is given up. */
export interface Expiry {
  type: "conversation.cmd.expire";
}

/** The actor came back after its effects were lost. */
export interface Recovery {
  type: "conversation.cmd.recover";
}

/** An outcome that the store refuses for good: its turn cannot go on. */
export interface Abandon {
  type: "conversation.cmd.abandon";
  turn: number;
  error: ErrorData;
  /** What the model call had taken whose outcome is lost. */
  facts?: AttemptFacts;
}

export type Signal = UserMessage | EffectSignal | ClientResult | Expiry | Recovery | Abandon;

/** A client's key is at most this long. */
export const MAX_KEY_LENGTH = 200;

const envelope = z.strictObject({
  id: z
    .string()
    .min(1)
    .max(MAX_KEY_LENGTH)
    .refine((id) => id.isWellFormed())
    .optional(),
  type: z.string(),
  data: z.strictObject({
    content: contentSchema,
    replyToMessageId: z.string().optional(),
    output: outputSchema.optional(),
  }),
});

/**
 * An envelope from outside as a signal. Throws `INVALID_SIGNAL` with the envelope's own reason (`missing_type`,
 * `external_type_not_allowed`, `missing_data_envelope`, `invalid_data`).
 */
export function normaliseSignal(input: unknown, caller: Caller): UserMessage {
  const reject = (reason: string, hint: string) =>
    new DramatisError("INVALID_SIGNAL", `${reason}: ${hint}`, { errors: [{ path: "", message: reason }] });
  if (typeof input !== "object" || input === null) throw reject("invalid_data", "a signal is an object");
  if (!("type" in input) || typeof input.type !== "string") throw reject("missing_type", "give `type`");
  if (input.type !== "conversation.user.message") {
    throw reject("external_type_not_allowed", "only conversation.user.message is accepted from outside");
  }
  if (!("data" in input)) throw reject("missing_data_envelope", "put the payload under `data`");
  const parsed = envelope.safeParse(input);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = issue?.path.join(".") ?? "";
    throw reject("invalid_data", `${path}: ${issue?.message ?? "does not fit"}`);
  }
  const { id, data } = parsed.data;
  return {
    type: "conversation.user.message",
    ...defined({ id }),
    caller,
    data: {
      content: data.content,
      ...defined({ replyToMessageId: data.replyToMessageId, output: data.output }),
    },
  };
}
