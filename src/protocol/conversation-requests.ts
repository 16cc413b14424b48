/** The requests that create and change a conversation, and that follow it. HTTP and RPC check them with these schemas. */
import { z } from "zod";
import { BLANK_RULE, isBlank } from "../shared/content.ts";
import { agentIdSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import { isConversationId } from "../shared/identifiers.ts";
import { UNICODE_RULE } from "../shared/json.ts";
import { budgetSchema } from "./budget.ts";
import { CHANNEL_NAME } from "./channels.ts";
import { turnOrderSchema } from "./conversation-schemas.ts";
import { frameFilter } from "./frame-filter.ts";
import { historySchema } from "./history.ts";
import { locationFields } from "./location-policy.ts";
import { participantSchema } from "./participants.ts";

const MAX_PARTICIPANTS = 100;

const titleSchema = z
  .string()
  .max(200)
  // A title with these marks would change the direction of the text beside it.
  .overwrite((title) => title.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, ""))
  .refine((title) => !isBlank(title), BLANK_RULE)
  .refine((title) => title.isWellFormed(), UNICODE_RULE)
  .meta({ minLength: 1 });

/** The members that a request for a new conversation has over HTTP and by RPC. */
const members = {
  title: titleSchema.exactOptional(),
  projectId: definitionIdSchema.exactOptional().describe("Default: the agent's first project."),
  turns: turnOrderSchema.exactOptional().describe("The order of turns that overlap. Default: `parallel`."),
  orchestration: z
    .boolean()
    .exactOptional()
    .describe("`false`: messages are recorded, and no model answers them. Default: `true`."),
  budget: budgetSchema.exactOptional().describe("Limits of all turns together."),
  locationHint: locationFields.locationHint,
  history: historySchema
    .exactOptional()
    .describe(
      "Earlier messages from elsewhere. The model sees them; the transcript does not show them. At most 1 MiB. Each call must be followed by its result, with the call's id in `toolCallId`.",
    ),
};

/** The body of `createConversation`. */
export const newConversation = z
  .strictObject({
    agentId: agentIdSchema.exactOptional(),
    participants: z.array(participantSchema).max(MAX_PARTICIPANTS).exactOptional(),
    ...members,
    jurisdiction: locationFields.jurisdiction,
  })
  .refine(({ agentId, participants }) => (agentId === undefined) !== (participants === undefined), {
    path: ["agentId"],
    message: "Give either `agentId` or `participants`.",
  })
  .refine(
    ({ agentId, participants }) =>
      agentId !== undefined ||
      participants === undefined ||
      participants.filter(({ type }) => type === "agent").length === 1,
    { path: ["participants"], message: "Must contain exactly one agent." },
  );

/** The body of `createConversation`. */
export type NewConversation = z.infer<typeof newConversation>;

export const createConversation = z.strictObject({
  id: z
    .string()
    .refine(
      isConversationId,
      "Must be `conv_` and a ULID of 26 capital letters and digits. In a jurisdiction, `_` and its name follow. `newConversationId()` returns such an id.",
    ),
  agentId: agentIdSchema,
  ...members,
  /** Further users. The creator is always a user. */
  users: z.array(z.string().min(1).max(200)).max(MAX_PARTICIPANTS).exactOptional(),
  /** `false` keeps the conversation out of the lists of the directory and of its agent. Its id still finds it. */
  listed: z.boolean().exactOptional(),
  /** The channel that it comes from. */
  channel: z.string().regex(CHANNEL_NAME).exactOptional(),
  /**
   * Identifies the creating request. Repeating the request returns the conversation; another request with the same id is
   * `IDEMPOTENCY_CONFLICT`. Without a fingerprint, an id that is taken is `CONFLICT`.
   */
  fingerprint: z.string().min(1).max(200).exactOptional(),
});

export type CreateConversation = z.infer<typeof createConversation>;

/** The body of `forkConversation` over HTTP. */
export const forkBody = z.strictObject({
  turnId: z
    .string()
    .max(200)
    .exactOptional()
    .describe("The last turn of the fork. It must be over. Default: the turn that completed last."),
  idempotencyKey: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe("The same key always returns the same fork."),
});

/** The body of `forkConversation` over HTTP. */
export type ForkInput = z.infer<typeof forkBody>;

/** A request for a fork by RPC. `id` is the id of the new conversation. */
export const forkConversation = z.strictObject({
  id: createConversation.shape.id,
  turnId: forkBody.shape.turnId,
});

export type ForkConversation = z.infer<typeof forkConversation>;

/** The body of `updateConversation`. Active turns keep their settings. */
export const updateConversation = z
  .strictObject({
    title: titleSchema.nullable().exactOptional().describe("The new title; null removes it."),
    turns: turnOrderSchema
      .exactOptional()
      .describe(
        "`parallel`: at the same time. `queued`: one after another. `interrupt`: a new message stops the active turns.",
      ),
    orchestration: z
      .boolean()
      .exactOptional()
      .describe("`false`: messages are recorded, and no model answers them. Active turns continue."),
    budget: budgetSchema
      .nullable()
      .exactOptional()
      .describe("Replaces the limits of the conversation; null removes them."),
  })
  .refine(
    (changes) => Object.keys(changes).length > 0,
    "Give `title`, `turns`, `orchestration` or `budget`.",
  );

export type UpdateConversation = z.infer<typeof updateConversation>;

export const subscribeOptions = z.strictObject({
  /** Continues after this entry; begins with a snapshot when absent. */
  from: z.int().min(0).exactOptional(),
  /** Limits the stream to this turn's frames, without a snapshot. It ends with the turn. */
  turnId: z.string().exactOptional(),
  /** With `turnId`: the stream also ends if the turn waits for work in the background. */
  untilWaiting: z.boolean().exactOptional(),
  ...frameFilter,
  /** The framing of the bytes: server-sent events, or one JSON text per line. */
  encoding: z.enum(["sse", "ndjson"]),
});

export type SubscribeOptions = z.infer<typeof subscribeOptions>;
