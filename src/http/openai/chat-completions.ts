/** `POST /v1/chat/completions`: a question with all that was said before it, answered in a conversation of its own. */
import type { Context } from "hono";
import { z } from "zod";
import type { AnswerEvent, AnswerPart } from "../../compat/answer.ts";
import { ChatChunkEncoder, chatCompletion } from "../../compat/openai/chat-chunks.ts";
import {
  type ChatRequest,
  chatInput,
  chatOptions,
  completionSchema,
} from "../../compat/openai/chat-request.ts";
import { streamError } from "../../compat/openai/errors.ts";
import { unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { json, refuseOtherMethods, sse } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { seeded } from "../routes/seeding.ts";
import { type StreamEncoder, streamedAnswer, wholeAnswer } from "./answers.ts";
import { CONVERSATION_HEADER, inFieldsOf } from "./errors.ts";
import {
  type Asked,
  type Asking,
  beginConversation,
  deliverResults,
  idempotencyKey,
  keyHeader,
} from "./turns.ts";

const PATH = "/v1/chat/completions";

const FIELDS = {
  agentId: "/model",
  history: "/messages",
  content: "/messages",
  toolChoice: "/tool_choice",
  output: "/response_format",
} as const;

const completion = z
  .looseObject({ id: z.string(), object: z.literal("chat.completion"), choices: z.array(z.looseObject({})) })
  .meta({ id: "OpenAiChatCompletion", description: "A `chat.completion` of the OpenAI API." });
const chunk = z.looseObject({}).meta({
  id: "OpenAiChatChunk",
  description: "A `chat.completion.chunk`, or `{error}`, which ends the stream.",
});

export const completionOperations: readonly ApiOperation[] = [
  {
    id: "openAiChatCompletion",
    method: "post",
    path: PATH,
    tag: "openai",
    summary: "Complete a chat",
    description:
      "`model` is an agent's id. Everything before the last message of the user is history, so nothing has to be kept between requests; `x-dramatis-conversation` names the conversation. Messages of the role `tool` at the end go on with the turn that asked for them. With `stream` the answer is chunks, ended by `[DONE]`.",
    headers: keyHeader,
    body: completionSchema,
    answers: [
      { status: 200, description: "The completion, or its chunks.", body: completion, stream: chunk },
    ],
    errors: [
      ...BODY_ERRORS,
      ...["FORBIDDEN", "NOT_FOUND", "CONFLICT", "IDEMPOTENCY_CONFLICT", "TOO_MANY_TURNS"],
      ...["UNSUPPORTED", "MODEL_FAILED", "RECOVERY_EXHAUSTED"],
    ] as const,
    errorFormat: "openai",
  },
];

export function chatCompletionRoutes(app: HttpRoutes): void {
  app.post(PATH, seeded, async (context) => {
    const { principal, actors, maxBodyBytes } = context.var;
    const body = await readJson(context.req.raw, maxBodyBytes);
    const request = validate(completionSchema, body);
    const key = idempotencyKey(context.req.header("idempotency-key"));
    const finalOnly = request.response_format?.type === "json_schema";
    const asked = await ask({ actors, principal, key, finalOnly }, request).catch((error: unknown) => {
      throw inFieldsOf(error, FIELDS);
    });
    context.res.headers.set(CONVERSATION_HEADER, asked.address.conversationId);
    return completionOf(context, asked, request);
  });
  refuseOtherMethods(app, PATH, ["POST"]);
}

async function completionOf(
  context: Context<HttpEnv>,
  asked: Asked,
  request: ChatRequest,
): Promise<Response> {
  if (request.stream === true) {
    const encoder = new ChatStream(asked, request.stream_options?.include_usage === true);
    return sse(context, (signal) => streamedAnswer(asked, encoder, signal));
  }
  const part = await wholeAnswer(asked);
  if (part.error !== undefined) unwrap({ ok: false, error: part.error });
  return json(chatCompletion(asked.address, asked.model, part));
}

async function ask(asking: Asking, request: ChatRequest): Promise<Asked> {
  const input = chatInput(request);
  if (input.type === "results") return deliverResults(asking, input, request.model, "/messages");
  const { stream, stream_options, ...question } = request;
  // SAFETY: the body was JSON, and the schema changes nothing.
  const body = question as unknown as Json;
  return beginConversation(asking, request.model, input, { ...chatOptions(request), listed: false, body });
}

/** The chunks as payloads, up to the mark that ends them. */
class ChatStream implements StreamEncoder<{ data: string }> {
  readonly #encoder: ChatChunkEncoder;

  constructor({ address, model }: Asked, withUsage: boolean) {
    this.#encoder = new ChatChunkEncoder(address, model, withUsage);
  }

  start() {
    return payloads([this.#encoder.start()]);
  }

  push(event: AnswerEvent) {
    return payloads(this.#encoder.push(event));
  }

  end(part: AnswerPart) {
    if (part.error !== undefined) return this.fail(part.error);
    return [...payloads(this.#encoder.end(part)), { data: "[DONE]" }];
  }

  fail(error: Parameters<typeof streamError>[0]) {
    return payloads([{ error: streamError(error) }]);
  }
}

function payloads(values: readonly object[]): { data: string }[] {
  return values.map((value) => ({ data: JSON.stringify(value) }));
}
