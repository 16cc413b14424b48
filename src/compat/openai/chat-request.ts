/** The body of a chat completion: its schema, and what it asks a conversation for. Pure. */

import { z } from "zod";
import type { StartTurn } from "../../protocol/conversation-api.ts";
import type { Content } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { callArguments, contentOf, type InputItem, type TurnInput, turnInput } from "./input.ts";
import {
  agentModel,
  IGNORED,
  jsonSchema,
  only,
  outputSpec,
  REFUSED,
  toolName,
  toolSpec,
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

const tool = z.object({
  type: z.literal("function", "Only functions are supported: they are run by the client."),
  function: z.object({
    name: toolName,
    description: z.string().nullish(),
    parameters: jsonSchema.nullish(),
  }),
});

export const completionSchema = z
  .strictObject({
    model: agentModel,
    messages: z.array(message).min(1).max(MAX_MESSAGES),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
    tools: z.array(tool).nullish(),
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
    top_logprobs: only(0),
    parallel_tool_calls: only(true),
    modalities: z.array(z.literal("text", "Only text is supported.")).nullish(),
    audio: REFUSED,
    stop: REFUSED,
    functions: REFUSED,
    function_call: REFUSED,
    web_search_options: REFUSED,
    moderation: REFUSED,
    logit_bias: REFUSED,
    temperature: IGNORED,
    top_p: IGNORED,
    max_tokens: IGNORED,
    max_completion_tokens: IGNORED,
    frequency_penalty: IGNORED,
    presence_penalty: IGNORED,
    seed: IGNORED,
    reasoning_effort: IGNORED,
    verbosity: IGNORED,
    prediction: IGNORED,
    service_tier: IGNORED,
    store: IGNORED,
    metadata: IGNORED,
    user: IGNORED,
    safety_identifier: IGNORED,
    prompt_cache_key: IGNORED,
    prompt_cache_retention: IGNORED,
    prompt_cache_options: IGNORED,
  })
  .meta({
    example: { model: "assistant", messages: [{ role: "user", content: "What is 12*(3+4)?" }] },
  });

export type ChatRequest = z.output<typeof completionSchema>;

/** The turn that a request asks for. Throws `INVALID_INPUT`. */
export function chatInput({ messages }: ChatRequest): TurnInput {
  return turnInput(messages.map(toItem), "/messages");
}

/** What is asked of the turn beside its content. Throws `INVALID_INPUT`. */
export function chatOptions(request: ChatRequest): Pick<StartTurn, "tools" | "toolChoice" | "output"> {
  const { tools, tool_choice: choice, response_format: format } = request;
  return {
    ...(tools == null || tools.length === 0 ? {} : { tools: tools.map((tool) => toolSpec(tool.function)) }),
    ...(choice == null
      ? {}
      : { toolChoice: typeof choice === "string" ? choice : { name: choice.function.name } }),
    ...(format?.type === "json_schema"
      ? {
          output: outputSpec(
            format.json_schema.name,
            format.json_schema.schema,
            "/response_format/json_schema/schema",
          ),
        }
      : {}),
  };
}

function toItem(message: Message, index: number): InputItem {
  switch (message.role) {
    case "system":
    case "developer":
      return { type: "system", text: textOf(message.content) };
    case "user":
      return { type: "user", content: userContent(message.content) };
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(
        ({ id, function: { name, arguments: text } }, position) => ({
          id,
          name,
          arguments: callArguments(text, `/messages/${index}/tool_calls/${position}/function/arguments`),
        }),
      );
      return { type: "assistant", text: textOf(message.content ?? ""), calls };
    }
    case "tool":
      return { type: "result", callId: message.tool_call_id, output: textOf(message.content) };
    default:
      return message satisfies never;
  }
}

type Said = string | readonly (z.infer<typeof textPart> | { type: "refusal"; refusal: string })[];

function textOf(content: Said): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : part.refusal)).join("\n\n");
}

function userContent(content: string | readonly z.infer<typeof userPart>[]): Content {
  if (typeof content === "string") return content;
  return contentOf(
    content.map((part) => {
      switch (part.type) {
        case "text":
          return { type: "text", text: part.text };
        case "image_url":
          return { type: "image", url: part.image_url.url };
        case "file": {
          const { file_data: url, filename } = part.file;
          return { type: "file", url, ...defined({ name: filename }) };
        }
        default:
          return part satisfies never;
      }
    }),
  );
}
