/** Reads the chunks and the whole replies of the Chat Completions protocol. */
import { z } from "zod";
import type { TokenUsage } from "../../../model/usage.ts";
import { isJson, isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { openaiUsage } from "../common/usage.ts";
import type { ChatReasoning } from "./reasoning.ts";
import type { ToolCallFragment } from "./tool-call-slots.ts";

export interface ChatPiece {
  id?: string | null | undefined;
  text?: string;
  /** By the server's own keys. */
  reasoning?: ChatReasoning | null | undefined;
  toolCalls?: readonly ToolCallFragment[] | undefined;
  usage?: TokenUsage | undefined;
  finish?: string | null | undefined;
  /** Set if the payload is a part of a reply; a heartbeat or a bare count of tokens is not. */
  isReply: boolean;
  /** Set if the payload is the whole reply: it is complete even without a finish reason. */
  isWhole?: boolean;
}

const text = z.string().nullish();

/** One tool call: nested under `function` as OpenAI has it, or flat as Workers AI's older models have it. */
export const toolCallSchema = z.object({
  index: z.number().int().nonnegative().nullish(),
  id: text,
  name: text,
  arguments: z.unknown().optional(),
  function: z.object({ name: text, arguments: z.unknown().optional() }).nullish(),
  extra_content: z.unknown().optional(),
});

const contentPart = z.object({ type: text, text }).transform((part) => part.text ?? "");

const messageSchema = z
  .object({
    content: z.union([z.string(), z.array(contentPart).transform((parts) => parts.join(""))]).nullish(),
    reasoning_content: text,
    reasoning: text.catch(undefined),
    reasoning_details: z.array(z.json()).nullish().catch(undefined),
    refusal: text,
    tool_calls: z.array(toolCallSchema).nullish(),
  })
  .nullish();

const chunkSchema = z.object({
  id: text.catch(undefined),
  choices: z
    .array(
      z.object({
        index: z.number().nullish(),
        delta: messageSchema,
        message: messageSchema,
        finish_reason: text,
      }),
    )
    .nullish(),
  usage: z.unknown().optional(),
});

/** Reads the first choice of a chunk; returns `undefined` if the chunk is not chat-shaped. */
export function readChatChunk(chunk: JsonObject): ChatPiece | undefined {
  const { data } = chunkSchema.safeParse(chunk);
  if (data === undefined) return undefined;
  const { id, choices } = data;
  const usage = openaiUsage(data.usage);
  const choice = choices?.find(({ index }) => (index ?? 0) === 0);
  if (choice === undefined) return { id, usage, isReply: false };
  const message = choice.delta ?? choice.message;
  return {
    id,
    usage,
    isReply: true,
    // A refusal takes the place of an answer.
    text: (message?.content ?? "") + (message?.refusal ?? ""),
    reasoning: message,
    toolCalls: message?.tool_calls?.map(toFragment),
    finish: choice.finish_reason,
    isWhole: choice.message !== null && choice.message !== undefined,
  };
}

export function toFragment(call: z.infer<typeof toolCallSchema>): ToolCallFragment {
  const input = call.function?.arguments ?? call.arguments ?? "";
  const extra = call.extra_content;
  return {
    index: call.index,
    id: call.id,
    name: call.function?.name ?? call.name,
    arguments: typeof input === "string" ? input : JSON.stringify(input),
    extra: isJsonObject(extra) && isJson(extra) ? { extra_content: extra } : undefined,
  };
}
