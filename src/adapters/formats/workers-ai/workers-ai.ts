/**
 * Workers AI: chat messages as `env.AI.run` takes them, and its two kinds of reply, `{response}` of the older models
 * and chat chunks of the newer ones.
 *
 * WORKERSAI-1  A structured reply is asked for unstreamed and without tools, because the platform has it only so; a
 *              request for it that offers tools is refused.
 */

import { z } from "zod";
import type { ModelContext } from "../../../model/context.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { chatUsage, readChatChunk, toFragment, toolCallSchema } from "../chat/chunk.ts";
import { chatContent } from "../chat/content.ts";
import { type ChatMessage, systemMessages, toChatMessage, toChatTool } from "../chat/messages.ts";
import { chatNative } from "../chat/native.ts";
import { type ChatPiece, ChatReader } from "../chat/reader.ts";
import { type ContextMedia, mediaUrl, resolveMedia } from "../common/media-source.ts";
import { unsupported } from "../common/native.ts";
import { ReplyStream } from "../common/reply-stream.ts";
import { continued, settings } from "../common/request.ts";
import { checkChoice } from "../common/tools.ts";

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
    checkChoice("workers-ai", context);
    const messages = [
      ...systemMessages(context.systemInstructions),
      ...context.messages.map((message) => toMessage(message, profile)),
    ];
    const tools = toolsOf(context);
    const output = outputOf(context);
    const reserved = ["messages", "tools", ...Object.keys(output)];
    if (tools.tools === undefined || tools.tool_choice !== undefined) reserved.push("tool_choice");
    return { messages, ...tools, stream: true, ...output, ...settings(profile.parameters, reserved) };
  },
  extend: (profile, request, messages) =>
    continued(
      request,
      "messages",
      messages.map((message) => toMessage(message, profile)),
    ),
  decoder: () => new ReplyStream("workers-ai", new ChatReader("workers-ai", readChunk)),
};

function toolsOf({ tools, toolChoice }: ModelContext): JsonObject {
  if (tools.length === 0 || toolChoice === "none") return {};
  const offered = { tools: tools.map(toChatTool) };
  if (toolChoice === "auto") return offered;
  const named = (name: string) => ({ type: "function", function: { name } });
  return { ...offered, tool_choice: typeof toolChoice === "string" ? toolChoice : named(toolChoice.name) };
}

function outputOf({ output, tools, toolChoice }: ModelContext): JsonObject {
  if (output === undefined) return {};
  if (tools.length > 0 && toolChoice !== "none") {
    throw unsupported("workers-ai", "a request for a structured reply that also offers tools");
  }
  return { stream: false, response_format: { type: "json_schema", json_schema: output.schema } };
}

function toMessage(message: ContextMessage, profile: ModelProfile): JsonObject {
  const { tool_calls: calls, ...chat }: ChatMessage = toChatMessage(message);
  const native = chatNative(message, profile);
  const { reasoning_content: thought, ...kept } = native.message;
  return {
    // Replies have either key; in a request the models know only this one.
    ...defined({ reasoning: thought }),
    ...kept,
    ...chat,
    content: chatContent("workers-ai", message, media),
    ...(calls === undefined
      ? {}
      : { tool_calls: calls.map((call, index) => ({ ...native.calls[index], ...call })) }),
  };
}

/** The chat models take images by value only, whatever their key `url` says. */
const media = {
  image(part: ContextMedia): JsonObject {
    const found = resolveMedia("workers-ai", part);
    if ("url" in found) throw unsupported("workers-ai", "an image by its address, only by value");
    return { type: "image_url", image_url: { url: mediaUrl(found) } };
  },
  file(): never {
    throw unsupported("workers-ai", "files, only images");
  },
};

const nativeSchema = z.object({
  response: z.unknown().optional(),
  tool_calls: z.array(toolCallSchema).nullish(),
  usage: z.unknown().optional(),
  finish_reason: z.string().nullish(),
});

function readChunk(chunk: JsonObject): ChatPiece | undefined {
  return isNative(chunk) ? readNative(chunk) : readChatChunk(chunk);
}

/** The older shape: `{response, tool_calls?, usage?}`. */
function isNative(chunk: JsonObject): boolean {
  return ("response" in chunk || "tool_calls" in chunk) && !("choices" in chunk);
}

function readNative(chunk: JsonObject): ChatPiece | undefined {
  const parsed = nativeSchema.safeParse(chunk);
  if (!parsed.success) return undefined;
  const { response, tool_calls: calls, usage, finish_reason: finish } = parsed.data;
  const tokens = chatUsage(usage);
  return {
    isReply: true,
    text: asText(response),
    toolCalls: (calls ?? []).map(toFragment),
    ...defined({ usage: tokens }),
    ...(finish ? { finish } : {}),
  };
}

/** `response` is text, but a token that looks like a number comes as one, and JSON mode gives the value itself. */
function asText(response: unknown): string {
  if (response === null || response === undefined) return "";
  return typeof response === "string" ? response : JSON.stringify(response);
}
