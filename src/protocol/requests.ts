/**
 * The requests about turns: messages, stops, tool results, answers to approvals, and WebSocket frames. HTTP, RPC and WebSocket check them with
 * these schemas.
 */
import { z } from "zod";
import { agentIdSchema } from "../shared/id-schemas.ts";
import { isJson, isJsonObject, JSON_RULE, type Json, type JsonObject, UNICODE_RULE } from "../shared/json.ts";
import { utf8Length } from "../shared/utf8.ts";
import { budgetSchema } from "./budget.ts";
import { content } from "./conversation-schemas.ts";
import { TOOL_ERROR_CODES } from "./executor-api.ts";
import { PROTOCOL_VERSION } from "./frames.ts";

const MAX_CLIENT_TOOLS = 64;
/** Total size of a turn's client tools, in bytes of JSON. */
const MAX_CLIENT_TOOLS_BYTES = 256 * 1024;
const MAX_SUBMISSIONS = 64;
/** Answers to requests for approval in one message. Several replies of a model have fewer calls. */
export const MAX_APPROVALS = 256;
/** Length of the reason of a stop, in UTF-16 units. */
const MAX_REASON_LENGTH = 500;
/** Length of a client's key, in UTF-16 units. */
export const MAX_KEY_LENGTH = 200;

const toolName = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, "A tool's name is 1 to 64 letters, digits, underscores and hyphens.");

const clientTool = z.strictObject({
  name: toolName,
  description: z.string().max(10_000),
  // SAFETY: `isJson` has checked it.
  inputSchema: z
    .looseObject({ type: z.literal("object", "The schema must describe an object.") })
    .refine(isJson, JSON_RULE) as z.ZodType<JsonObject>,
});

/** A turn's client tools: distinct names, within the limits. */
const clientToolsSchema = z
  .array(clientTool)
  .max(MAX_CLIENT_TOOLS)
  .superRefine((tools, context) => {
    tools.forEach((tool, index) => {
      if (tools.findIndex((other) => other.name === tool.name) === index) return;
      context.addIssue({ code: "custom", path: [index, "name"], message: "Another tool has this name." });
    });
    if (utf8Length(JSON.stringify(tools)) <= MAX_CLIENT_TOOLS_BYTES) return;
    const message = `The tools of a turn may have ${MAX_CLIENT_TOOLS_BYTES} bytes of JSON together.`;
    context.addIssue({ code: "custom", message });
  });

const toolChoiceSchema = z.union([z.enum(["auto", "none", "required"]), z.strictObject({ name: toolName })]);

/** The tools that a model may or must call: all, no tool, at least one tool, or the named tool. */
export type ToolChoice = z.infer<typeof toolChoiceSchema>;

/** The form of a turn's answer. The model gets `name`. */
const outputSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "Must be 1 to 64 letters, digits, `_` and `-`.")
    .default("answer"),
  // SAFETY: the turn checks the schema when it starts.
  schema: z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>,
});

const toolErrorSchema = z.strictObject(
  {
    message: z.string().min(1).max(10_000),
    /** `EXECUTION_FAILED` when absent. */
    code: z.enum(TOOL_ERROR_CODES).exactOptional(),
    /** Allows the model to repeat the call; `false` when absent. */
    retriable: z.boolean().exactOptional(),
  },
  { error: errorForm },
);

/** The failure of a tool call, as the model gets it. */
export type ClientToolError = z.infer<typeof toolErrorSchema>;

const outcomeFields = {
  /** The result that the model gets. */
  // SAFETY: `isJson` has checked it.
  result: z.unknown().refine(isJson, JSON_RULE).exactOptional() as z.ZodExactOptional<z.ZodType<Json>>,
  error: toolErrorSchema.exactOptional(),
};

/** Returns advice for an error in the form of the request. Returns `undefined` for other issues. */
function errorForm({ code }: { code: string }): string | undefined {
  if (code !== "invalid_type") return undefined;
  return 'Must be an object with a message, as in `{"error": {"message": "Out of stock."}}`.';
}

/** Reports whether exactly one of the two is given. */
function isOutcome(value: { result?: unknown; error?: unknown }): boolean {
  return Object.hasOwn(value, "result") !== Object.hasOwn(value, "error");
}

const ONE_OUTCOME = "Give either `result` or `error`.";

/** The schema of a tool's result from a client. */
export const outcomeSchema = z.strictObject(outcomeFields).refine(isOutcome, ONE_OUTCOME);

/** The outcome of a tool call: exactly one of the two. */
export type ToolOutcome = z.infer<typeof outcomeSchema>;

export const identifier = z.string().min(1).max(MAX_KEY_LENGTH);

const submissionSchema = z
  .strictObject({ operationId: identifier, ...outcomeFields })
  .refine(isOutcome, ONE_OUTCOME);

/** The outcome of the call with this id. */
export type ToolSubmission = z.infer<typeof submissionSchema>;

export const submissionsSchema = z.array(submissionSchema).min(1).max(MAX_SUBMISSIONS);

const version = z.literal(PROTOCOL_VERSION).optional();

/** The members of a request for a turn, without its content and its key. */
const turnFields = {
  replyToMessageId: identifier.exactOptional(),
  to: agentIdSchema
    .exactOptional()
    .describe(
      "The participating agent that receives the message. Default: the first agent that the text mentions as `@id`. Otherwise the author of the message that it replies to, then the agent of this user's newest answered turn, then the conversation's first agent.",
    ),
  tools: clientToolsSchema
    .exactOptional()
    .describe(
      "Tools that the client runs: the turn waits for their results. At most 64, together 256 KiB. Their names must differ from the agent's tools.",
    ),
  toolChoice: toolChoiceSchema
    .exactOptional()
    .describe("Tools that the model may or must use in its first reply. Default: `auto`."),
  /** Requires an answer in JSON of this schema. */
  output: outputSchema.exactOptional(),
  budget: budgetSchema
    .exactOptional()
    .describe(
      "Limits of this turn. The limits of the conversation and of its agent also apply: the smallest limit decides.",
    ),
  untrusted: z
    .literal(true)
    .exactOptional()
    .describe("The content has text from elsewhere, such as a mail. A memory that comes from it is tainted."),
};

export const startTurnBody = z.strictObject({
  content,
  /** Becomes the signal's id: the same key and body return the same turn. */
  idempotencyKey: identifier.refine((key) => key.isWellFormed(), UNICODE_RULE).exactOptional(),
  ...turnFields,
});

export const regenerateTurn = startTurnBody.pick({ idempotencyKey: true });

export type RegenerateTurn = z.infer<typeof regenerateTurn>;

export const editTurn = startTurnBody.pick({ content: true, idempotencyKey: true });

export type EditTurn = z.infer<typeof editTurn>;

export const startTurn = startTurnBody.extend({
  /** The most tokens of each reply of the model. A lower limit of the model profile replaces it. */
  maxOutputTokens: z.int().min(1).exactOptional(),
  /** The model calls at most one tool in each reply. A reply may have several calls when absent. */
  singleCalls: z.literal(true).exactOptional(),
  /** Runs `async` tools as others: the sender gets one answer, with all results. */
  foreground: z.literal(true).exactOptional(),
  /** The place of the sender in a trace, as in the header of W3C Trace Context. An invalid one counts as absent. */
  traceparent: z.string().exactOptional(),
});

export type StartTurn = z.infer<typeof startTurn>;

/** The members of a request to stop a turn, or to stop or resume a conversation. */
const stopFields = {
  reason: z
    .string()
    .min(1)
    .max(MAX_REASON_LENGTH)
    .exactOptional()
    .describe(`Kept in the journal. At most ${MAX_REASON_LENGTH} characters.`),
};

/** A request to stop, to resume or to end. */
export const stopRequest = z.strictObject(stopFields).meta({ example: { reason: "Wrong question." } });

export type StopOptions = z.infer<typeof stopRequest>;

/** The payload of a signal that stops a turn, or the conversation. */
export const stopSignal = z.strictObject({ turnId: identifier.exactOptional(), ...stopFields });

export const approvalFields = {
  approved: z.boolean().describe("`true`: the call runs."),
  reason: stopFields.reason.describe(
    `The model gets the reason of a denial. At most ${MAX_REASON_LENGTH} characters.`,
  ),
  values: z
    .custom<JsonObject>(isJsonObject, "Must be an object.")
    .meta({
      type: "object",
      description:
        "The answer to a question of an MCP server (`elicitation`). Required if a call with a question is approved.",
    })
    .exactOptional(),
  round: z.int().min(1).describe("The `round` of the question. Required with `values`.").exactOptional(),
};

/** The answer to a request for approval. It has no input, because the call runs with the shown input. */
export const approvalAnswer = z.strictObject(approvalFields);

export type ApprovalAnswer = z.infer<typeof approvalAnswer>;
/** Answers that come together. The turn takes all of them, or none. */
export const callAnswersSchema = z.strictObject({
  approvals: z
    .array(
      z.strictObject({
        operationId: identifier,
        ...approvalFields,
        /** A request that is over is left out. */
        mayBeOver: z.literal(true).exactOptional(),
      }),
    )
    .max(MAX_APPROVALS)
    .refine((answers) => new Set(answers.map(({ operationId }) => operationId)).size === answers.length, {
      error: "Give one answer to each operation.",
    }),
  results: submissionsSchema.exactOptional(),
  /** The client's key of the message. The same key again answers the same requests. */
  key: z
    .string()
    .min(1)
    .max(2 * MAX_KEY_LENGTH)
    .exactOptional(),
});

export type CallAnswers = z.infer<typeof callAnswersSchema>;

/** A frame that a client may send over a WebSocket. `id` is the client's idempotency key. */
export const clientFrameSchema = z.discriminatedUnion("type", [
  z.strictObject({
    v: version,
    type: z.literal("turn.start"),
    id: identifier,
    content,
    ...turnFields,
  }),
  z
    .strictObject({ v: version, type: z.literal("tool.result"), operationId: identifier, ...outcomeFields })
    .refine(isOutcome, ONE_OUTCOME),
  z.strictObject({ v: version, type: z.literal("tool.claim"), operationId: identifier }),
  z.strictObject({
    v: version,
    type: z.literal("approval.resolve"),
    operationId: identifier,
    ...approvalFields,
  }),
  z.strictObject({ v: version, type: z.literal("turn.cancel"), turnId: identifier, ...stopFields }),
  z.strictObject({ v: version, type: z.literal("conversation.cancel"), ...stopFields }),
  z.strictObject({ v: version, type: z.literal("conversation.resume"), ...stopFields }),
  z.strictObject({ v: version, type: z.literal("ping") }),
  z.strictObject({ v: version, type: z.literal("ack"), mark: identifier }),
]);

export type ClientFrame = z.infer<typeof clientFrameSchema>;

export const CLIENT_FRAME_TYPES = [
  "turn.start",
  "tool.result",
  "tool.claim",
  "approval.resolve",
  "turn.cancel",
  "conversation.cancel",
  "conversation.resume",
  "ping",
  "ack",
] as const satisfies ClientFrame["type"][];
