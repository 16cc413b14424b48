/**
 * The body of a run of AG-UI: its schema, and its conversion to a turn, or to answers that continue a turn. Pure.
 *
 * AGUI-5  The thread is a conversation, and its history is the server's. A run reads the newest message of the user, or the results of tools at
 *         the end of the messages and the answers in `resume`. A run without messages, results and answers only reads the thread. A cancelled question of a
 *         workflow cancels the workflow.
 * AGUI-6  The values in `context` join the message of the user. `state` has no effect.
 */
import { z } from "zod";
import { mayAnswer } from "../../protocol/approval.ts";
import type { MessageView } from "../../protocol/conversation-schemas.ts";
import { approvalFields, identifier, type StartTurn, type ToolSubmission } from "../../protocol/requests.ts";
import type { RunView } from "../../protocol/run-schemas.ts";
import { type Content, parseContent } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { isOperationId } from "../../shared/identifiers.ts";
import { isJson, isPlainObject, type Json, type JsonObject, UNICODE_RULE } from "../../shared/json.ts";
import type { Principal } from "../../shared/principal.ts";
import { invalidAt, validate } from "../../shared/validation.ts";
import { joinedText, userContent } from "../content.ts";
import { jsonSchema, toolName, turnOptions } from "../openai/request-fields.ts";
import type { HeldRun } from "./encoder.ts";
import type { AgUiMessage, Interrupt } from "./events.ts";
import { interruptId, parseInterruptId } from "./interrupt-id.ts";

const MAX_MESSAGES = 10_000;
const MAX_CONTEXT = 100;
const MAX_ANSWERS = 64;
const MAX_INTERRUPT_ID = 500;
/** Begins the part of a message with the values of `context`. */
const CONTEXT_HEADING = "Context of the application:";

const key = identifier.refine((text) => text.isWellFormed(), UNICODE_RULE);

const tool = z.object({
  name: toolName,
  description: z.string(),
  parameters: jsonSchema.nullish(),
});

export const runSchema = z
  .object({
    threadId: key.describe(
      "A name of the client for a conversation with this agent, or the id of a conversation. A new name begins a conversation.",
    ),
    runId: key.describe("The idempotency key: the same id and message have the same turn."),
    messages: z
      .array(z.looseObject({ role: z.string() }))
      .max(MAX_MESSAGES, `Must have at most ${MAX_MESSAGES} messages.`),
    tools: z.array(tool).nullish().describe("Tools that the client runs."),
    context: z
      .array(z.object({ description: z.string(), value: z.string() }))
      .max(MAX_CONTEXT)
      .nullish()
      .describe("Joins the message of the user."),
    resume: z
      .array(
        z.object({
          interruptId: z.string().max(MAX_INTERRUPT_ID),
          status: z.enum(["resolved", "cancelled"]),
          payload: z.unknown().optional(),
        }),
      )
      .max(MAX_ANSWERS)
      .nullish()
      .describe("Answers to the interrupts of earlier runs."),
    forwardedProps: z
      .unknown()
      .optional()
      .describe("`{ dramatis: { keepRunning: true } }`: leaving the stream does not stop the turn."),
    protocolVersion: z
      .string()
      .nullish()
      .describe("The version that the client speaks; absent if it is older than 1.0."),
    state: z.unknown().optional().describe("Accepted, without effect."),
  })
  .meta({
    example: {
      threadId: "a thread of yours",
      runId: "a key of yours",
      messages: [{ id: "1", role: "user", content: "What is 12*(3+4)?" }],
    },
  });

export type RunInput = z.output<typeof runSchema>;

const source = z.discriminatedUnion("type", [
  z.object({ type: z.literal("url"), value: z.string().min(1), mimeType: z.string().nullish() }),
  z.object({ type: z.literal("data"), value: z.string().min(1), mimeType: z.string().min(1) }),
]);
const part = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text"), text: z.string() }),
    z.object({ type: z.enum(["image", "document"]), source }),
  ],
  "Only texts, images and documents are supported.",
);
const userMessage = z.object({ content: z.union([z.string(), z.array(part).min(1)]) });

const toolMessage = z.object({
  toolCallId: z.string(),
  content: z.union([z.string(), z.array(z.object({ type: z.literal("text"), text: z.string() }))]),
  error: z.string().nullish(),
});

const approval = z.object(approvalFields);

export interface InterruptAnswer {
  conversationId: string;
  turnId: string;
  operationId: string;
  approved: boolean;
  reason?: string;
  /** The answer to a question of an MCP server. */
  values?: JsonObject;
  round?: number;
  /** The person gave no answer, so the request may be over. */
  isCancelled: boolean;
  /** The answer is for a question of the call's workflow. */
  gate?: { runId: string; operationId: string; answer: Json };
}

export type RunRequest =
  | { type: "turn"; turn: StartTurn }
  | { type: "answers"; results: ToolSubmission[]; answers: InterruptAnswer[] }
  | { type: "read" };

/** Returns the effect of a run (AGUI-5). Throws `INVALID_INPUT`. */
export function runRequest({ messages, tools, context, resume, runId }: RunInput): RunRequest {
  const answers = (resume ?? []).map((entry, index) => answerOf(entry, `/resume/${index}`));
  const isRepeated = new Set(resume?.map(({ interruptId }) => interruptId)).size < answers.length;
  if (isRepeated) throw invalidAt("/resume", "Must have one answer for each interrupt.");
  const results = resultsOf(messages);
  if (answers.length > 0 || results.length > 0) return { type: "answers", results, answers };
  const last = messages.length - 1;
  if (messages[last]?.role !== "user") return { type: "read" };
  const path = `/messages/${last}`;
  const { content } = validate(userMessage, messages[last], path);
  const { tools: specs } = turnOptions({
    ...{ choice: undefined, output: undefined, maxOutputTokens: undefined, parallel: undefined },
    tools,
  });
  const whole = parseContent(withContext(userContent(content, toPart), context ?? []), `${path}/content`);
  return { type: "turn", turn: { content: whole, idempotencyKey: runId, ...defined({ tools: specs }) } };
}

/** Reports whether the turn of a run continues if its client leaves. */
export function keepsRunning({ forwardedProps: props }: RunInput): boolean {
  return isPlainObject(props) && isPlainObject(props.dramatis) && props.dramatis.keepRunning === true;
}

/** Returns the results at the end of the messages. The agent's own results are among them. */
function resultsOf(messages: RunInput["messages"]): ToolSubmission[] {
  const first = messages.findLastIndex(({ role }) => role !== "tool") + 1;
  return messages.slice(first).map((message, index) => {
    const path = `/messages/${first + index}`;
    const { toolCallId, content, error } = validate(toolMessage, message, path);
    if (!isOperationId(toolCallId))
      throw invalidAt(`${path}/toolCallId`, "Must be the id of a call in this thread.");
    const outcome = error == null ? { result: joinedText(content) } : { error: { message: error } };
    return { operationId: toolCallId, ...outcome };
  });
}

function answerOf(
  { interruptId: id, status, payload }: NonNullable<RunInput["resume"]>[number],
  path: string,
): InterruptAnswer {
  const isCancelled = status === "cancelled";
  const place = parseInterruptId(id);
  if (place === undefined)
    throw invalidAt(`${path}/interruptId`, "Must be the id of an interrupt of this thread.");
  const { call, gate, round } = place;
  if (gate !== undefined) {
    if (!isCancelled && !isJson(payload)) throw invalidAt(`${path}/payload`, "Must be the answer, as JSON.");
    const answer = isJson(payload) ? payload : null;
    return { ...call, approved: !isCancelled, isCancelled, gate: { ...gate, answer } };
  }
  if (isCancelled) return { ...call, approved: false, isCancelled, ...defined({ round }) };
  const { approved, reason, values } = validate(approval, payload, `${path}/payload`);
  return { ...call, approved, ...defined({ reason, values, round }), isCancelled };
}

export function gateInterrupts(
  conversationId: string,
  { turnId, operationId, runId }: HeldRun,
  run: RunView,
  principal: Principal,
): Interrupt[] {
  const call = { conversationId, turnId, operationId };
  return run.gates
    .filter((gate) => mayAnswer(gate, principal, true))
    .map(({ operationId: gate, prompt, schema, expiresAt }) => ({
      id: interruptId({ call, gate: { runId, operationId: gate } }),
      reason: "input_required",
      ...{ message: prompt, toolCallId: operationId, responseSchema: schema, ...defined({ expiresAt }) },
    }));
}

/** Adds the values of `context` to a message, as its last part (AGUI-6). */
function withContext(content: Content, context: readonly { description: string; value: string }[]): Content {
  if (context.length === 0) return content;
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const lines = context.map(({ description, value }) => `${description}: ${value}`);
  return [...parts, { type: "text", text: [CONTEXT_HEADING, ...lines].join("\n") }];
}

function toPart(part: Exclude<z.output<typeof userMessage>["content"], string>[number]) {
  if (part.type === "text") return { type: "text" as const, text: part.text };
  const type = part.type === "image" ? ("image" as const) : ("file" as const);
  const { value, mimeType } = part.source;
  const mediaType = mimeType ?? undefined;
  const url = part.source.type === "url" ? value : `data:${mediaType};base64,${value}`;
  return { type, url, ...defined({ mediaType }) };
}

/** Returns a message for a snapshot. It omits the values of `context`. */
export function snapshotMessage({ id, role, content }: MessageView): AgUiMessage {
  if (role === "agent") return { id, role: "assistant", content: textOf(content) };
  if (typeof content === "string") return { id, role: "user", content };
  const last = content.at(-1);
  const hasContext = last?.type === "text" && last.text.startsWith(`${CONTEXT_HEADING}\n`);
  const parts = hasContext ? content.slice(0, -1) : content;
  const [first, ...rest] = parts;
  if (first?.type === "text" && rest.length === 0) return { id, role: "user", content: first.text };
  const shown = parts.map((part) => {
    if (part.type === "text") return part;
    const { type, url, mediaType } = part;
    const [, mimeType = "", value] = /^data:([^;,]+);base64,(.+)$/s.exec(url) ?? [];
    const source =
      value === undefined
        ? { type: "url" as const, value: url, ...defined({ mimeType: mediaType }) }
        : { type: "data" as const, value, mimeType };
    return { type: type === "image" ? ("image" as const) : ("document" as const), source };
  });
  return { id, role: "user", content: shown };
}

function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return joinedText(content.filter((part) => part.type === "text"));
}
