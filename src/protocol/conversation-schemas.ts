/** Schemas of conversations as clients see them: messages, turns, journals and dead letters. Times are ISO 8601 UTC. */
import { z } from "zod";
import { contentSchema } from "../shared/content.ts";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import { budgetSchema } from "./budget.ts";
import { startingCaller, turnCaller, turnIssues } from "./caller-schemas.ts";
import { ENTRY_TYPES } from "./journal.ts";
import { locationFields } from "./location-policy.ts";
import { approval, memoryError, move, usedMemories, wireError } from "./move-schemas.ts";
import { lostFiles } from "./saved-workspace.ts";
import { anyValue, count, ids, runId, time } from "./scalars.ts";
import { dollars, providerCall, spending, turnTokens, usage } from "./usage-schemas.ts";

/** The order of turns that overlap; `parallel` when absent. */
export const turnOrderSchema = z.enum(["parallel", "queued", "interrupt"]);

/**
 * The order of turns that overlap. `parallel`: at the same time. `queued`: one after another, in the order of their messages.
 * `interrupt`: a new message stops the active turns.
 */
export type TurnOrder = z.infer<typeof turnOrderSchema>;

export const content = contentSchema.meta({
  id: "Content",
  description:
    "Text, or 1 to 64 parts; at most 1 MiB. The URL of an image or a file is the `url` of an attachment, an https URL or a data URL.",
  example: "What is 12*(3+4)?",
});

export const attachment = z
  .strictObject({
    id: z.string().meta({ example: "att_01JD0000000000000000000000" }),
    mediaType: z.string(),
    size: z.int().min(1).describe("Bytes."),
    name: z.string().exactOptional(),
    url: z.string().meta({
      description: "URL of the attachment in content.",
      example: "attachment:att_01JD0000000000000000000000",
    }),
  })
  .meta({ id: "Attachment", description: "An image or a file of a conversation." });

/** An uploaded image or file. */
export type AttachmentView = z.infer<typeof attachment>;

const budget = budgetSchema.meta({
  id: "Budget",
  description: "Limits on model calls and tool calls. An absent member sets no limit.",
});

const summary = {
  id: ids.conversation,
  title: z.string().nullable(),
  agentId: ids.agent,
  projectId: definitionIdSchema,
  /** The jurisdiction that the conversation's id names. */
  jurisdiction: locationFields.jurisdiction,
  participants: z.array(z.strictObject({ type: z.enum(["user", "agent"]), id: z.string() })),
  calledBy: z
    .union([
      z.strictObject({ agentId: ids.agent, turnId: ids.turn, conversationId: ids.conversation }),
      z.strictObject({ runId, node: z.string().exactOptional() }),
    ])
    .describe("The agent or the run that opened the conversation, and the place that waits for the answer.")
    .exactOptional(),
  forkedFrom: z
    .strictObject({ conversationId: ids.conversation, turnId: ids.turn })
    .describe("The conversation that it was forked from, and the last turn of the fork.")
    .exactOptional(),
  channel: z
    .string()
    .meta({ description: "The channel that it came from, such as a thread of Slack.", example: "slack" })
    .exactOptional(),
  createdAt: time,
};
const mark = z.literal(true).exactOptional();
export const conversationSummary = z
  .strictObject({
    ...summary,
    lastActivityAt: time.describe(
      "The time of the newest beginning or end of a turn; the creation before the first turn. Lists have it within about 15 seconds.",
    ),
    pinned: mark.describe("The caller pinned the conversation."),
    archived: mark.describe("The caller archived the conversation, and no later turn has begun."),
  })
  .meta({ id: "ConversationSummary" });

/** A conversation in a list. */
export type ConversationSummary = z.infer<typeof conversationSummary>;

export const conversation = z
  .strictObject({
    ...summary,
    /** The region that it was asked to begin in. */
    locationHint: locationFields.locationHint,
    status: z.enum(["active", "waiting", "completed", "failed"]),
    orchestration: z
      .literal(false)
      .exactOptional()
      .describe("`false`: messages are recorded, and no model answers them."),
    listed: z
      .literal(false)
      .exactOptional()
      .describe("`false`: no list has the conversation. Its id finds it."),
    queued: count.exactOptional().describe("Messages that are accepted and have not begun their turns."),
    turns: turnOrderSchema.describe(
      "The order of overlapping turns: at the same time, one after another, or a new message stops the active turns.",
    ),
    gate: z
      .enum(["idle", "running", "cancelled"])
      .describe("`running`: turns are active. `cancelled`: the conversation is stopped."),
    /** Present if the conversation itself was requested. Absent in snapshots. */
    usage: usage.exactOptional(),
    /** The amounts that the conversation has used up since its beginning. Present with `usage`. */
    spent: spending.exactOptional(),
    /** The smallest limits of the conversation and of its agent. Absent without limits. */
    budget: budget.exactOptional(),
    budgetLeft: budget.exactOptional().describe("The remaining part of `budget`."),
  })
  .meta({ id: "Conversation" });

export type ConversationView = z.infer<typeof conversation>;

export const importedConversation = z
  .strictObject({
    ...conversation.shape,
    notRestored: z
      .array(lostFiles)
      .describe("The repositories with files that were not restored.")
      .exactOptional(),
  })
  .meta({ id: "ImportedConversation" });

export type ImportedConversation = z.infer<typeof importedConversation>;

const replacing = {
  regenerates: ids.turn
    .describe("The turn with the same message that this turn answers again.")
    .exactOptional(),
  edits: ids.turn.describe("The turn with the message that this turn's message replaces.").exactOptional(),
};

export const message = z
  .strictObject({
    id: ids.message,
    turnId: ids.turn,
    role: z.enum(["user", "agent"]),
    content,
    createdAt: time,
    agentId: ids.agent.exactOptional(),
    clientId: z.string().describe("The sender's idempotency key.").exactOptional(),
    runId: runId.describe("The run that sent the message.").exactOptional(),
    ...replacing,
    stopped: z
      .literal(true)
      .describe("The turn ended while the message streamed. `content` is the shown part.")
      .exactOptional(),
    notice: z
      .literal(true)
      .describe(
        "The text is a notice of the platform, because the model gave no text in the turn's last call.",
      )
      .exactOptional(),
  })
  .meta({ id: "Message" });

export type MessageView = z.infer<typeof message>;

const turnFields = {
  id: ids.turn,
  status: z.enum(["active", "completed", "failed"]),
  agentId: ids.agent,
  createdAt: time,
  completedAt: time.nullable(),
  phase: z
    .enum(["queued", "waiting"])
    .describe(
      "`queued`: the turn waits for earlier turns. `waiting`: the turn waits only for a person's approval, for deferred results, or for background results after the agent's answer. It resumes automatically.",
    )
    .exactOptional(),
  error: wireError.exactOptional(),
  silent: z.literal(true).describe("The turn completed without a message.").exactOptional(),
  issues: turnIssues.exactOptional(),
  ...replacing,
  replacedBy: ids.turn.describe("The turn that replaced this turn.").exactOptional(),
};
export const turnSummary = z
  .strictObject({ ...turnFields, caller: startingCaller.exactOptional() })
  .meta({ id: "TurnSummary" });

export const turn = z
  .strictObject({
    ...turnFields,
    conversationId: ids.conversation,
    answer: z
      .string()
      .nullable()
      .describe("The text of the agent's message; `null` unless the turn is completed."),
    caller: turnCaller,
    input: content,
    correlationId: z.string().describe("Common to everything that follows from the message."),
    userMessageId: ids.message.describe("The message that the turn answers."),
    agentMessageIds: z.array(ids.message),
    replyToMessageId: ids.message.nullable(),
    contextAssemblyRunId: z.string().nullable(),
    memoryExtractionRunId: z.string().nullable(),
    /** Milliseconds from creation to completion; `null` while active. */
    latencyMs: count.nullable(),
    usage: turnTokens,
    /** `null` if no called model has prices. */
    cost: dollars.nullable(),
    /** With estimates for calls that no provider counted. */
    spent: spending,
    /** The turn's own limits. Absent without limits. */
    budget: budget.exactOptional(),
    /** In order. */
    calls: z.array(providerCall),
    memories: usedMemories.exactOptional(),
    memoryError: memoryError.exactOptional(),
    output: anyValue.describe("The structured output of a completed turn that requested it.").exactOptional(),
    moves: z.array(move),
    versions: z
      .array(ids.turn)
      .describe(
        "This turn with the turns that it replaced and that replaced it, the oldest first. At most 65. Absent without other versions.",
      )
      .exactOptional(),
  })
  .meta({ id: "Turn" });

export type TurnView = z.infer<typeof turn>;

/** A turn in a list or a snapshot. Lists omit `output` and `spent`. `caller` is absent if a user started the turn. */
export type TurnSummary = Omit<z.infer<typeof turnSummary>, "caller"> &
  Partial<Pick<TurnView, "caller" | "output" | "spent">>;

export const acceptedTurn = z
  .strictObject({
    turnId: ids.turn,
    messageId: ids.message.describe("Id of the user's message."),
    status: z
      .literal("failed")
      .exactOptional()
      .describe(
        "The turn failed at once: the conversation is stopped, or its budget is used up. Read the turn for its error.",
      ),
  })
  .meta({ id: "StartedTurn" });

export const resolvedApproval = z
  .strictObject({ operationId: ids.operation, turnId: ids.turn, approval })
  .meta({ id: "ResolvedApproval" });

/** A call with its approval, or the denial of it, given now or before. */
export type ResolvedApproval = z.infer<typeof resolvedApproval>;

export const submittedResult = z
  .strictObject({ operationId: ids.operation, turnId: ids.turn })
  .meta({ id: "SubmittedResult" });

/** A result that was accepted, now or before. */
export type SubmittedResult = z.infer<typeof submittedResult>;

export const completedOperation = z
  .strictObject({ operationId: ids.operation, status: z.enum(["completed", "failed"]) })
  .meta({ id: "CompletedOperation" });

/** A deferred operation with its result, accepted now or before. */
export type CompletedOperation = z.infer<typeof completedOperation>;

/** The turn, message and tool call that an entry or a frame belongs to. */
const subject = {
  turnId: ids.turn.exactOptional(),
  messageId: ids.message.exactOptional(),
  operationId: ids.operation.exactOptional(),
};

export const journalEntry = z
  .strictObject({
    seq: z.int().min(1),
    // SAFETY: a client may get a type of a later release.
    type: z.enum(ENTRY_TYPES) as z.ZodType<string>,
    time,
    ...subject,
    correlationId: z.string().describe("Common to everything that follows from one signal.").exactOptional(),
    causeId: z
      .string()
      .describe("The id of the signal or the message that the entry follows from.")
      .exactOptional(),
    data: anyValue.exactOptional(),
  })
  .meta({ id: "JournalEntry", description: "One durable entry of a conversation." });

export type JournalEntryView = z.infer<typeof journalEntry>;

export const frame = z
  .strictObject({
    v: z.literal(1),
    seq: z.int().min(1).describe("Only on durable frames. Ascends; numbers may be skipped.").exactOptional(),
    type: z.string().meta({ example: "message.delta" }),
    ...subject,
    time,
    data: z.record(z.string(), anyValue),
  })
  .meta({
    id: "Frame",
    description:
      "A message to readers of a conversation. In a stream of server-sent events each `data:` is a frame and each `id:` its `seq`; on a WebSocket each message is a frame. Frames with a `seq` are durable and can be read again.",
    example: {
      v: 1,
      type: "message.delta",
      turnId: "turn_01JD0000000000000000000001",
      messageId: "msg_01JD00000000000000000001A1",
      time: "2026-03-01T10:00:00.000Z",
      data: { offset: 0, text: "84" },
    },
  });

export const inputIssues = z.array(z.strictObject({ path: z.string(), message: z.string() }));

const address = z.strictObject({ kind: z.string(), tenant: z.string(), id: z.string() });

export const deadLetter = z
  .strictObject({
    id: ids.deadLetter,
    status: z
      .enum(["failed", "unknown"])
      .describe("`failed`: the receiver did not act on it. `unknown`: the outcome is unknown."),
    type: z.string(),
    from: address,
    to: address,
    inReplyTo: ids.operation.exactOptional(),
    error: z.strictObject({
      code: z.string(),
      message: z.string(),
      retriable: z.boolean(),
      retryAfter: count.exactOptional(),
      errors: inputIssues.exactOptional(),
    }),
    attempts: count,
    /** Without secrets; `null` if larger than 16 KiB. */
    body: anyValue,
    sentAt: time,
    diedAt: time,
    repliedAt: time.exactOptional(),
  })
  .meta({ id: "DeadLetter", description: "An undelivered envelope between actors." });

/** A dead letter as operators see it. */
export type DeadLetterView = z.infer<typeof deadLetter>;
