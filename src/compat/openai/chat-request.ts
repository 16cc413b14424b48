/** The body of a chat completion request: its schema, and its conversion to a turn. Pure. */
import { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { joinedText, userContent } from "../content.ts";
import {
  callArguments,
  type InputItem,
  invalidInput,
  type MessageInput,
  type ResultsInput,
  turnInput,
} from "./input.ts";
import {
  agentModel,
  COMMON_FIELDS,
  clientTools,
  IGNORED,
  isFunction,
  jsonSchema,
  OUTPUT_TOKENS,
  only,
  outputSpec,
  REFUSED,
  type TurnOptions,
  toolName,
  turnOptions,
} from "./request-fields.ts";

const MAX_MESSAGES = 2_000;

const textPart = z.object({ type: z.literal("text"), text: z.string() });
const texts = z.union([z.string(), z.array(textPart)]);

const userPart = z.discriminatedUnion("type", [
  textPart,
  z.object({ type: z.literal("image_url"), image_url: z.object({ url: z.string().min(1) }) }),
  z.object({
    type: z.literal("file"),
    file: z.object({ file_data: z.string().min(1), filename: z.string().optional() }),
  }),
]);

const call = z.object({
  id: z.string().min(1),
  type: z.literal("function"),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
});

const message = z.discriminatedUnion("role", [
  z.object({ role: z.enum(["system", "developer"]), content: texts }),
  z.object({ role: z.literal("user"), content: z.union([z.string(), z.array(userPart).min(1)]) }),
  z.object({
    role: z.literal("assistant"),
    content: z
      .union([
        z.string(),
        z.array(z.union([textPart, z.object({ type: z.literal("refusal"), refusal: z.string() })])),
      ])
      .nullish(),
    tool_calls: z.array(call).nullish(),
  }),
  z.object({ role: z.literal("tool"), tool_call_id: z.string().min(1), content: texts }),
]);

type Message = z.infer<typeof message>;

const tools = clientTools({
  function: z.object({
    name: toolName,
    description: z.string().nullish(),
    parameters: jsonSchema.nullish(),
  }),
});

export const completionSchema = z
  .strictObject({
    model: agentModel,
    messages: z
      .array(message)
      .min(1, "Must have at least one message.")
      .max(MAX_MESSAGES, `Must have at most ${MAX_MESSAGES} messages.`),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
    tools,
    tool_choice: z
      .union([
        z.enum(["auto", "none", "required"]),
        z.object({ type: z.literal("function"), function: z.object({ name: toolName }) }),
      ])
      .nullish(),
    response_format: z
      .discriminatedUnion("type", [
        z.object({ type: z.literal("text") }),
        z.object({
          type: z.literal("json_schema"),
          json_schema: z.object({ name: toolName, schema: jsonSchema.optional() }),
        }),
      ])
      .nullish(),
    n: only(1),
    logprobs: only(false),
    modalities: z.array(z.literal("text", "Only text is supported.")).nullish(),
    audio: REFUSED,
    stop: REFUSED,
    functions: REFUSED,
    function_call: REFUSED,
    web_search_options: REFUSED,
    logit_bias: REFUSED,
    max_tokens: OUTPUT_TOKENS,
    max_completion_tokens: OUTPUT_TOKENS,
    frequency_penalty: IGNORED,
    presence_penalty: IGNORED,
    seed: IGNORED,
    reasoning_effort: IGNORED,
    verbosity: IGNORED,
    prediction: IGNORED,
    ...COMMON_FIELDS,
  })
  .meta({
    example: { model: "assistant", messages: [{ role: "user", content: "What is 12*(3+4)?" }] },
  });

export type ChatRequest = z.output<typeof completionSchema>;

/** Returns the turn that a request starts or continues. Throws `INVALID_INPUT`. */
export function chatInput({ messages }: ChatRequest): MessageInput | ResultsInput {
  return turnInput(messages.map(toItem), "/messages");
}

/** Returns the options of the turn. Throws `INVALID_INPUT`. */
export function chatOptions({
  tools,
  tool_choice: choice,
  response_format: format,
  max_tokens: older,
  max_completion_tokens: newer,
  parallel_tool_calls: parallel,
}: ChatRequest): TurnOptions {
  if (older != null && newer != null && older !== newer)
    throw invalidInput("/max_tokens", "Differs from `max_completion_tokens`. Give one of them.");
  const path = "/response_format/json_schema/schema";
  return turnOptions({
    tools: tools?.filter(isFunction).map((tool) => tool.function),
    choice: typeof choice === "string" ? choice : choice?.function,
    output:
      format?.type === "json_schema"
        ? outputSpec(format.json_schema.name, format.json_schema.schema, path)
        : undefined,
    maxOutputTokens: newer ?? older,
    parallel,
  });
}

function toItem(message: Message, index: number): InputItem {
  switch (message.role) {
    case "system":
    case "developer":
      return { type: "system", text: joinedText(message.content) };
    case "user":
      return { type: "user", content: userContent(message.content, toPart) };
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(
        ({ id, function: { name, arguments: text } }, position) => ({
          id,
          name,
          arguments: callArguments(text, `/messages/${index}/tool_calls/${position}/function/arguments`),
        }),
      );
      return { type: "assistant", text: joinedText(message.content ?? ""), calls };
    }
    case "tool":
      return {
        type: "result",
        callId: message.tool_call_id,
        output: joinedText(message.content),
        path: `/messages/${index}/tool_call_id`,
      };
    default:
      return message satisfies never;
  }
}

function toPart(part: z.infer<typeof userPart>) {
  switch (part.type) {
    case "text":
      return { type: "text" as const, text: part.text };
    case "image_url":
      return { type: "image" as const, url: part.image_url.url };
    case "file": {
      const { file_data: url, filename: name } = part.file;
      return { type: "file" as const, url, ...defined({ name }) };
    }
    default:
      return part satisfies never;
  }
}
