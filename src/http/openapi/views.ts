/**
 * Schemas of the answers.
 *
 * API-1  Every answer fits its schema strictly: no field is missing, and no field is unknown to the schema.
 */
import { z } from "zod";
import { OPENAI_ERROR_TYPES, type OpenAiError } from "../../compat/openai/errors.ts";
import { referenceSchema } from "../../library/definitions/reference.ts";
import { personaSchema } from "../../library/personas/persona-schema.ts";
import type { AgentIdentity, AgentView } from "../../protocol/agent-api.ts";
import { agentBudgetSchema, budgetSchema } from "../../protocol/budget.ts";
import { startingCaller, turnCaller, turnIssues } from "../../protocol/caller-schemas.ts";
import type {
  CompletedOperation,
  ResolvedApproval,
  SubmittedResult,
} from "../../protocol/conversation-api.ts";
import { ENTRY_TYPES } from "../../protocol/journal.ts";
import { locationFields } from "../../protocol/location-policy.ts";
import { approval, memoryError, move, usedMemories, wireError } from "../../protocol/move-schemas.ts";
import { clientFrameSchema, turnOrderSchema } from "../../protocol/requests.ts";
import { anyJson, count, ids, runId, time } from "../../protocol/scalars.ts";
import { dollars, providerCall, spending, turnTokens, usage } from "../../protocol/usage-schemas.ts";
import type {
  AttachmentView,
  ConversationSummary,
  ConversationView,
  DeadLetterView,
  JournalEntryView,
  MessageView,
  TurnSummary,
  TurnView,
} from "../../protocol/views.ts";
import { contentSchema } from "../../shared/content.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import type { Facts } from "../../shared/json.ts";
import { PROBLEM_CODES, type Problem } from "../base/problem.ts";

export const persona = personaSchema.meta({
  id: "Persona",
  description:
    "Prompt, memory and tools of an agent. A hook in `memory` names a task or a workflow: `contextAssembly` makes the provider's request of each cycle, `memoryExtraction` gets each completed turn. An agent that remembers without `memory.scope` shares what it learned among all of its users: set `user` where it has several.",
});
/** The input of `parsePersonaSource`. */
export const personaSource = z.union([referenceSchema, persona]).meta({
  description:
    'A persona, or a reference to one: `library/id`, `library/id@version`, or an object. `{libraryId: "library/id", version: "1"}` is accepted, too.',
});
export const content = contentSchema.meta({
  id: "Content",
  description:
    "Text, or 1 to 64 parts; at most 1 MiB. The URL of an image or a file is the `url` of an attachment, an https URL or a data URL.",
  example: "What is 12*(3+4)?",
});

export const attachment: z.ZodType<AttachmentView> = z
  .strictObject({
    id: z.string().meta({ example: "att_01JD0000000000000000000000" }),
    mediaType: z.string(),
    size: z.int().min(1).meta({ description: "Bytes." }),
    name: z.exactOptional(z.string()),
    url: z.string().meta({
      description: "URL of the attachment in content.",
      example: "attachment:att_01JD0000000000000000000000",
    }),
  })
  .meta({ id: "Attachment", description: "An image or a file of a conversation." });

const budget = budgetSchema.meta({
  id: "Budget",
  description: "Limits of what model calls and tool calls may use up. An absent one does not limit.",
});

/** Free facts about an agent, as documented. */
export const agentMetadata: z.ZodType<Facts> = z.record(z.string(), anyJson);

const agentMembers = {
  id: ids.agent,
  tenant: z.string(),
  persona: z.union([
    z.strictObject({
      library: definitionIdSchema,
      id: definitionIdSchema,
      version: z.exactOptional(z.int()),
    }),
    persona,
  ]),
  projectIds: z.array(definitionIdSchema),
  budget: agentBudgetSchema
    .exactOptional()
    .meta({ description: "Limits of all of its conversations together. Lists leave it out." }),
  metadata: agentMetadata
    .exactOptional()
    .meta({ description: "Free facts about the agent; absent where it has none." }),
  ...locationFields,
  createdAt: time,
  updatedAt: time,
};

export const agent: z.ZodType<AgentIdentity> = z.strictObject(agentMembers).meta({ id: "Agent" });

const agentAmounts = z.strictObject({ tokens: z.int(), usd: z.number(), modelCalls: z.int() });

export const agentView: z.ZodType<AgentView> = z
  .strictObject({
    ...agentMembers,
    spent: agentAmounts.exactOptional().meta({
      description:
        "Used up by its conversations with a lease of its budget, as they last reported. For authors, operators and administrators.",
    }),
    leased: agentAmounts.exactOptional().meta({
      description: "Leased to its conversations, and not used up. For authors, operators and administrators.",
    }),
    description: z.exactOptional(
      z.string().meta({ description: "The description of its persona, if that is one of a library." }),
    ),
    examples: z.exactOptional(
      z.array(z.string()).meta({ description: "Messages that show what the agent can do, of its persona." }),
    ),
  })
  .meta({ id: "AgentView" });

const summary = {
  id: ids.conversation,
  title: z.string().nullable(),
  agentId: ids.agent,
  projectId: definitionIdSchema,
  jurisdiction: locationFields.jurisdiction,
  participants: z.array(z.strictObject({ type: z.enum(["user", "agent"]), id: z.string() })),
  calledBy: z.exactOptional(
    z
      .union([
        z.strictObject({ agentId: ids.agent, turnId: ids.turn, conversationId: ids.conversation }),
        z.strictObject({ runId, node: z.exactOptional(z.string()) }),
      ])
      .meta({
        description:
          "The agent or the run whose call opened the conversation, and where it waits for the answer.",
      }),
  ),
  createdAt: time,
};
export const conversationSummary: z.ZodType<ConversationSummary> = z
  .strictObject(summary)
  .meta({ id: "ConversationSummary" });
export const conversation: z.ZodType<ConversationView> = z
  .strictObject({
    ...summary,
    locationHint: locationFields.locationHint,
    status: z.enum(["active", "waiting", "completed", "failed"]),
    orchestration: z.exactOptional(z.literal(false)).meta({
      description: "`false`: messages are recorded, and no model answers them.",
    }),
    queued: count.exactOptional().meta({
      description: "Messages that are accepted and have not begun their turns.",
    }),
    turns: turnOrderSchema.meta({
      description:
        "How turns that overlap go on: at the same time, one after another, or a new message stops the active turns.",
    }),
    gate: z
      .enum(["idle", "running", "cancelled"])
      .meta({ description: "`running`: turns are active. `cancelled`: the conversation is stopped." }),
    usage: z.exactOptional(usage),
    spent: z.exactOptional(spending),
    budget: budget.exactOptional(),
    budgetLeft: budget.exactOptional().meta({ description: "What is left of `budget`." }),
  })
  .meta({ id: "Conversation" });

export const message: z.ZodType<MessageView> = z
  .strictObject({
    id: ids.message,
    turnId: ids.turn,
    role: z.enum(["user", "agent"]),
    content,
    createdAt: time,
    agentId: z.exactOptional(ids.agent),
    clientId: z.exactOptional(z.string().meta({ description: "The sender's idempotency key." })),
    runId: z.exactOptional(runId.meta({ description: "The run that sent the message." })),
    stopped: z.exactOptional(
      z.literal(true).meta({
        description: "The turn ended while the message streamed; `content` is what was shown.",
      }),
    ),
    notice: z.exactOptional(
      z.literal(true).meta({
        description:
          "The text is a notice of the platform, because the model gave no text in the turn's last call.",
      }),
    ),
  })
  .meta({ id: "Message" });

const turnFields = {
  id: ids.turn,
  status: z.enum(["active", "completed", "failed"]),
  agentId: ids.agent,
  createdAt: time,
  completedAt: time.nullable(),
  phase: z.exactOptional(
    z.enum(["queued", "waiting"]).meta({
      description:
        "`queued`: the turn waits for those before it. `waiting`: it waits for nothing but results of operations, in the background (the agent has answered) or deferred, and goes on by itself; or it waits for a person to approve a call.",
    }),
  ),
  error: z.exactOptional(wireError),
  silent: z.exactOptional(z.literal(true).meta({ description: "The turn completed without a message." })),
  issues: z.exactOptional(turnIssues),
};
export const turnSummary: z.ZodType<Omit<TurnSummary, "output">> = z
  .strictObject({ ...turnFields, caller: z.exactOptional(startingCaller) })
  .meta({ id: "TurnSummary" });

export const turn: z.ZodType<TurnView> = z
  .strictObject({
    ...turnFields,
    conversationId: ids.conversation,
    answer: z
      .string()
      .nullable()
      .meta({ description: "The text of the agent's message; `null` unless the turn is completed." }),
    caller: turnCaller,
    input: content,
    correlationId: z.string().meta({ description: "Common to everything that follows from the message." }),
    userMessageId: ids.message.meta({ description: "The message that the turn answers." }),
    agentMessageIds: z.array(ids.message),
    replyToMessageId: ids.message.nullable(),
    contextAssemblyRunId: z.string().nullable(),
    memoryExtractionRunId: z.string().nullable(),
    latencyMs: count.nullable(),
    usage: turnTokens,
    cost: dollars.nullable(),
    spent: spending,
    budget: budget.exactOptional(),
    calls: z.array(providerCall),
    memories: z.exactOptional(usedMemories),
    memoryError: z.exactOptional(memoryError),
    output: z.exactOptional(
      anyJson.meta({
        description: "The structured output of a completed turn that requested it.",
      }),
    ),
    moves: z.array(move),
  })
  .meta({ id: "Turn" });

export const acceptedTurn = z
  .strictObject({
    turnId: ids.turn,
    messageId: ids.message.meta({ description: "Id of the user's message." }),
    status: z.literal("failed").exactOptional().meta({
      description:
        "The turn failed at once: the conversation is stopped, or its budget is used up. Read the turn for its error.",
    }),
  })
  .meta({ id: "StartedTurn" });

export const resolvedApproval: z.ZodType<ResolvedApproval> = z
  .strictObject({ operationId: ids.operation, turnId: ids.turn, approval })
  .meta({ id: "ResolvedApproval" });

export const submittedResult: z.ZodType<SubmittedResult> = z
  .strictObject({ operationId: ids.operation, turnId: ids.turn })
  .meta({ id: "SubmittedResult" });

export const completedOperation: z.ZodType<CompletedOperation> = z
  .strictObject({ operationId: ids.operation, status: z.enum(["completed", "failed"]) })
  .meta({ id: "CompletedOperation" });

/** The turn, message and tool call that an entry or a frame belongs to. */
const subject = {
  turnId: z.exactOptional(ids.turn),
  messageId: z.exactOptional(ids.message),
  operationId: z.exactOptional(ids.operation),
};

export const journalEntry: z.ZodType<JournalEntryView> = z
  .strictObject({
    seq: z.int().min(1),
    type: z.enum(ENTRY_TYPES),
    time,
    ...subject,
    correlationId: z.exactOptional(
      z.string().meta({ description: "Common to everything that follows from one signal." }),
    ),
    causeId: z.exactOptional(
      z.string().meta({ description: "The id of the signal or the message that the entry follows from." }),
    ),
    data: z.exactOptional(anyJson),
  })
  .meta({ id: "JournalEntry", description: "One durable entry of a conversation." });

export const frame = z
  .strictObject({
    v: z.literal(1),
    seq: z.exactOptional(
      z.int().min(1).meta({ description: "Only on durable frames. Ascends; numbers may be skipped." }),
    ),
    type: z.string().meta({ example: "message.delta" }),
    ...subject,
    time,
    data: z.record(z.string(), anyJson),
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

export const clientFrame = clientFrameSchema.meta({
  id: "ClientFrame",
  description: "A message of a client on a WebSocket. `id` is its idempotency key.",
  example: { type: "turn.start", id: "a key of yours", content: "Hello" },
});

const inputIssues = z.array(z.strictObject({ path: z.string(), message: z.string() }));

export const problemDocument: z.ZodType<Problem> = z
  .strictObject({
    type: z.literal("about:blank"),
    title: z.string().meta({ description: "The status as text." }),
    status: z.int(),
    detail: z.string().meta({ description: "The problem, and how to solve it." }),
    code: z.enum(PROBLEM_CODES).meta({ description: "Stable code of the error." }),
    errors: z.exactOptional(
      inputIssues.meta({ description: "Problems and their places; `path` is a JSON pointer." }),
    ),
    incident: z.exactOptional(
      z.string().meta({ description: "Only with `INTERNAL_ERROR`: quote it when you report the error." }),
    ),
  })
  .meta({
    id: "Problem",
    description: "The body of every error (RFC 9457).",
    example: {
      type: "about:blank",
      title: "Unprocessable Content",
      status: 422,
      detail: "The input is not valid: /title: Too small: expected string to have >=1 characters",
      code: "INVALID_INPUT",
      errors: [{ path: "/title", message: "Too small: expected string to have >=1 characters" }],
    },
  });

export const openAiErrorDocument: z.ZodType<{ error: OpenAiError }> = z
  .strictObject({
    error: z.strictObject({
      message: z.string().meta({ description: "The problem, and how to solve it." }),
      type: z.enum(OPENAI_ERROR_TYPES),
      param: z.string().nullable().meta({ description: "The invalid field." }),
      code: z.string().meta({ description: "Stable code of the error." }),
    }),
  })
  .meta({ id: "OpenAiError", description: "The body of every error of `/v1`." });

const address = z.strictObject({ kind: z.string(), tenant: z.string(), id: z.string() });

export const deadLetter: z.ZodType<DeadLetterView> = z
  .strictObject({
    id: ids.deadLetter,
    status: z
      .enum(["failed", "unknown"])
      .meta({ description: "`failed`: the receiver did not act on it. `unknown`: the outcome is unknown." }),
    type: z.string(),
    from: address,
    to: address,
    inReplyTo: z.exactOptional(ids.operation),
    error: z.strictObject({
      code: z.string(),
      message: z.string(),
      retriable: z.boolean(),
      retryAfter: z.exactOptional(count),
      errors: z.exactOptional(inputIssues),
    }),
    attempts: count,
    body: anyJson,
    sentAt: time,
    diedAt: time,
    repliedAt: z.exactOptional(time),
  })
  .meta({ id: "DeadLetter", description: "An undelivered envelope between actors." });

/** Returns the schema of a page of a list. */
export function listOf(resource: string, item: z.ZodType): z.ZodObject {
  return z.strictObject({
    [resource]: z.array(item),
    nextCursor: z.exactOptional(
      z.string().meta({ description: "The `cursor` of the next page; absent on the last page." }),
    ),
  });
}
