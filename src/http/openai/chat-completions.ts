/** `POST /v1/chat/completions`: answers a message with its history, in a conversation of its own. */
import { z } from "zod";
import { ChatChunkEncoder, chatCompletion } from "../../compat/openai/chat-chunks.ts";
import {
  type ChatRequest,
  chatInput,
  chatOptions,
  completionSchema,
} from "../../compat/openai/chat-request.ts";
import { unwrap } from "../../shared/errors.ts";
import { json, sse } from "../base/respond.ts";
import { type Route, route } from "../openapi/route.ts";
import { streamedAnswer, wholeAnswer } from "./answers.ts";
import {
  type AnswerRequest,
  beginConversation,
  keyHeader,
  nameIgnored,
  type PendingAnswer,
  requestAnswer,
  submitResults,
  TURN_ERRORS,
} from "./turns.ts";

const PATH = "/v1/chat/completions";

const POINTERS = { input: "/messages", format: "/response_format" };

const completion = z
  .looseObject({ id: z.string(), object: z.literal("chat.completion"), choices: z.array(z.looseObject({})) })
  .meta({ id: "OpenAiChatCompletion", description: "A `chat.completion` of the OpenAI API." });
const chunk = z.looseObject({}).meta({
  id: "OpenAiChatChunk",
  description: "A `chat.completion.chunk`, or `{error}`, which comes last. The stream ends with `[DONE]`.",
});

export const chatCompletionRoutes: readonly Route[] = [
  route({
    id: "openAiChatCompletion",
    method: "post",
    path: PATH,
    tag: "openai",
    summary: "Complete a chat",
    description:
      "`model` is the id of an agent. The messages before the last message of the user are history: each request is complete. `x-dramatis-conversation` names the conversation. Messages of the role `tool` at the end continue the turn that made the calls. With `stream` the answer is chunks, ended by `[DONE]`.",
    headers: keyHeader,
    body: completionSchema,
    answers: [
      { status: 200, description: "The completion, or its chunks.", body: completion, stream: chunk },
    ],
    errors: [...TURN_ERRORS, "CANCELLED", "MODEL_FAILED", "RECOVERY_EXHAUSTED"],
    errorFormat: "openai",
    handle: async ({ headers, body }, _, context) => {
      nameIgnored(context, completionSchema, body);
      const { stream, stream_options, response_format: format } = body;
      const pending = await requestAnswer(context, headers, format, POINTERS, (request) =>
        start(request, body),
      );
      const { address, model } = pending;
      if (stream === true) {
        const encoder = new ChatChunkEncoder(address, model, stream_options?.include_usage === true);
        return sse(context, (signal) => payloads(streamedAnswer(pending, encoder, signal)));
      }
      const answer = await wholeAnswer(pending);
      if (answer.error !== undefined) unwrap({ ok: false, error: answer.error });
      return json(chatCompletion(address, model, answer));
    },
  }),
];

async function start(request: AnswerRequest, body: ChatRequest): Promise<PendingAnswer> {
  const input = chatInput(body);
  if (input.type === "results") return submitResults(request, input, body.model);
  const { stream, stream_options, ...question } = body;
  return beginConversation(request, body.model, input, { ...chatOptions(body), listed: false, question });
}

/** Adds the mark that ends a stream, also after an error. */
async function* payloads(chunks: AsyncIterable<object>): AsyncGenerator<{ data: string }, void> {
  for await (const chunk of chunks) {
    yield { data: JSON.stringify(chunk) };
    if ("error" in chunk) break;
  }
  yield { data: "[DONE]" };
}
