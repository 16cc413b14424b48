/** Reads the chunks and the whole replies of the Chat Completions protocol. */

import { z } from "zod";
import type { TokenUsage } from "../../../model/usage.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { isJson, isJsonObject } from "../../../shared/json.ts";
import type { ToolCallFragment } from "../common/tool-call-slots.ts";
import { finerCounts, tokenUsage } from "../common/usage.ts";
import type { ChatReasoning } from "./native.ts";
import type { ChatPiece } from "./reader.ts";

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

const messageSchema = z.object({
  content: z.union([z.string(), z.array(contentPart).transform((parts) => parts.join(""))]).nullish(),
  reasoning_content: text,
  reasoning: text.catch(undefined),
  reasoning_details: z.array(z.json()).nullish().catch(undefined),
  refusal: text,
  tool_calls: z.array(toolCallSchema).nullish(),
});

const chunkSchema = z.object({
  id: text.catch(undefined),
  choices: z
    .array(
      z.object({
        index: z.number().nullish(),
        delta: messageSchema.nullish(),
        message: messageSchema.nullish(),
        finish_reason: text,
      }),
    )
    .nullish(),
  usage: z.unknown().optional(),
});

/** Only the first choice is read; `undefined` if the chunk is not chat-shaped. */
export function readChatChunk(chunk: JsonObject): ChatPiece | undefined {
  const parsed = chunkSchema.safeParse(chunk);
  if (!parsed.success) return undefined;
  const { id, choices, usage } = parsed.data;
  const tokens = chatUsage(usage);
  const base = { ...(id ? { id } : {}), ...defined({ usage: tokens }) };
  const choice = choices?.find(({ index }) => (index ?? 0) === 0);
  if (choice === undefined) return { ...base, isReply: false };
  const message = choice.delta ?? choice.message;
  return {
    ...base,
    isReply: true,
    // A refusal is what the model says instead of an answer.
    text: (message?.content ?? "") + (message?.refusal ?? ""),
    reasoning: message?.reasoning_content ?? message?.reasoning ?? "",
    kept: toReasoning(message),
    toolCalls: (message?.tool_calls ?? []).map(toFragment),
    ...(choice.finish_reason ? { finish: choice.finish_reason } : {}),
    isWhole: choice.message !== null && choice.message !== undefined,
  };
}

function toReasoning(message: z.infer<typeof messageSchema> | null | undefined): ChatReasoning {
  const { reasoning_details: details, reasoning_content: content, reasoning } = message ?? {};
  return {
    ...(details ? { reasoning_details: details } : {}),
    ...(content ? { reasoning_content: content } : {}),
    ...(reasoning ? { reasoning } : {}),
  };
}

export function toFragment(call: z.infer<typeof toolCallSchema>): ToolCallFragment {
  const name = call.function?.name ?? call.name;
  const input = call.function?.arguments ?? call.arguments;
  return {
    ...(call.index === null || call.index === undefined ? {} : { index: call.index }),
    ...(call.id ? { id: call.id } : {}),
    ...(name ? { name } : {}),
    ...(input === null || input === undefined
      ? {}
      : { arguments: typeof input === "string" ? input : JSON.stringify(input) }),
    ...(isJsonObject(call.extra_content) && isJson(call.extra_content)
      ? { extra: { extra_content: call.extra_content } }
      : {}),
  };
}

/** Token counts, with the provider's finer ones. */
export function chatUsage(value: unknown): TokenUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const { prompt_tokens_details: input, completion_tokens_details: output } = value;
  const ofInput = isJsonObject(input) ? input : {};
  return tokenUsage(
    {
      inputTokens: value.prompt_tokens,
      cachedInputTokens: ofInput.cached_tokens ?? value.prompt_cache_hit_tokens,
      cacheWriteTokens: ofInput.cache_write_tokens,
      outputTokens: value.completion_tokens,
      reasoningTokens: isJsonObject(output) ? output.reasoning_tokens : undefined,
      totalTokens: value.total_tokens,
    },
    finerCounts(value),
  );
}
