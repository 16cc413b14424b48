/**
 * Workers AI: chat messages as `env.AI.run` takes them, and its two kinds of reply, `{response}` of the older models
 * and chat chunks of the newer ones.
 */
import { z } from "zod";
import type { ContextMessage } from "../memory/types.ts";
import type { JsonObject } from "../shared/json.ts";
import { readChatChunk, readUsage, toFragment, toolCallSchema } from "./chat-chunk.ts";
import {
  appendMessages,
  type ChatMessage,
  settings,
  systemMessages,
  toChatMessage,
  toChatTool,
} from "./chat-messages.ts";
import { type ChatPiece, ChatStream } from "./chat-stream.ts";
import type { FormatAdapter } from "./types.ts";

/** Turns a working context into the input of a model, without any state. */
export interface ModelFormatAdapter<Input = unknown> {
  readonly name: string;
  toModelMessages(systemInstructions: readonly string[], messages: readonly ContextMessage[]): Input;
}

export type WorkersAIChatMessage = ChatMessage;

/**
 * Context messages as Workers AI takes them: the instructions as one leading system message, tool calls of type
 * `function` with their arguments as JSON text.
 * @example await env.AI.run(model, workersAIAdapter.toModelMessages(context.systemInstructions, context.messages))
 */
export const workersAIAdapter: ModelFormatAdapter<{ messages: WorkersAIChatMessage[] }> = {
  name: "workers-ai",
  toModelMessages: (systemInstructions, messages) => ({
    messages: [...systemMessages(systemInstructions), ...messages.map(toChatMessage)],
  }),
};

/** The runtime's adapter for `workers-ai`. `toolChoice: "none"` leaves the tools out: not every model knows the option. */
export const workersAIFormat: FormatAdapter = {
  provider: "workers-ai",
  buildRequest(profile, context) {
    const offersTools = context.tools.length > 0 && context.toolChoice === "auto";
    const reserved = offersTools ? ["messages", "tools"] : ["messages", "tools", "tool_choice"];
    return {
      ...workersAIAdapter.toModelMessages(context.systemInstructions, context.messages),
      ...(offersTools ? { tools: context.tools.map(toChatTool) } : {}),
      stream: true,
      ...settings(profile.parameters, reserved),
    };
  },
  extend: (_profile, request, messages) => appendMessages(request, messages.map(toChatMessage)),
  decoder: () =>
    new ChatStream("workers-ai", (chunk) => (isNative(chunk) ? readNative(chunk) : readChatChunk(chunk))),
};

const nativeSchema = z.object({
  response: z.unknown().optional(),
  tool_calls: z.array(toolCallSchema).nullish(),
  usage: z.unknown().optional(),
  finish_reason: z.string().nullish(),
});

/** The older shape: `{response, tool_calls?, usage?}`. */
function isNative(chunk: JsonObject): boolean {
  return ("response" in chunk || "tool_calls" in chunk) && !("choices" in chunk);
}

function readNative(chunk: JsonObject): ChatPiece | undefined {
  const parsed = nativeSchema.safeParse(chunk);
  if (!parsed.success) return undefined;
  const { response, tool_calls: calls, usage, finish_reason: finish } = parsed.data;
  const tokens = readUsage(usage);
  return {
    isReply: true,
    text: asText(response),
    toolCalls: (calls ?? []).map(toFragment),
    ...(tokens === undefined ? {} : { usage: tokens }),
    ...(finish ? { finish } : {}),
  };
}

/** `response` is text, but a token that looks like a number comes as one, and JSON mode gives the value itself. */
function asText(response: unknown): string {
  if (response === null || response === undefined) return "";
  return typeof response === "string" ? response : JSON.stringify(response);
}
