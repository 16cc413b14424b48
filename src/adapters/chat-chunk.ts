/** Reads the chunks and the whole replies of the Chat Completions protocol. */
import { z } from "zod";
import type { JsonObject } from "../shared/json.ts";
import { isJsonObject } from "../shared/json.ts";
import type { ChatPiece } from "./chat-stream.ts";
import type { ToolCallFragment } from "./tool-call-slots.ts";
import type { TokenUsage } from "./types.ts";

const text = z.string().nullish();

/** One tool call: nested under `function` as OpenAI has it, or flat as Workers AI's older models have it. */
export const toolCallSchema = z.object({
  index: z.number().int().nonnegative().nullish(),
  id: text,
  name: text,
  arguments: z.unknown().optional(),
  function: z.object({ name: text, arguments: z.unknown().optional() }).nullish(),
});

const contentPart = z.object({ type: text, text }).transform((part) => part.text ?? "");

const messageSchema = z.object({
  content: z.union([z.string(), z.array(contentPart).transform((parts) => parts.join(""))]).nullish(),
  reasoning_content: text,
  reasoning: text.catch(undefined),
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
  const tokens = readUsage(usage);
  const base = { ...(id ? { id } : {}), ...(tokens === undefined ? {} : { usage: tokens }) };
  const choice = choices?.find(({ index }) => (index ?? 0) === 0);
  if (choice === undefined) return { ...base, isReply: false };
  const message = choice.delta ?? choice.message;
  return {
    ...base,
    isReply: true,
    // A refusal is what the model says instead of an answer.
    text: (message?.content ?? "") + (message?.refusal ?? ""),
    reasoning: message?.reasoning_content ?? message?.reasoning ?? "",
    toolCalls: (message?.tool_calls ?? []).map(toFragment),
    ...(choice.finish_reason ? { finish: choice.finish_reason } : {}),
    isWhole: choice.message !== null && choice.message !== undefined,
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
  };
}

/** Token counts; the provider's finer counts are kept as they are. */
export function readUsage(value: unknown): TokenUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const breakdown = Object.entries(value).filter(([, detail]) => isJsonObject(detail));
  const usage: TokenUsage = {
    ...count("inputTokens", value.prompt_tokens),
    ...count("outputTokens", value.completion_tokens),
    ...count("totalTokens", value.total_tokens),
    ...(breakdown.length === 0 ? {} : { breakdown: Object.fromEntries(breakdown) }),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

function count(key: "inputTokens" | "outputTokens" | "totalTokens", value: unknown): TokenUsage {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? { [key]: value } : {};
}
