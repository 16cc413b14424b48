/**
 * Workers AI: chat messages for `env.AI.run`, and its two kinds of reply. Older models send `{response}`, newer models send chat chunks.
 *
 * WORKERSAI-1  A structured reply is requested unstreamed and without tools, because the platform supports no other form. A request for it
 *              that offers tools is refused.
 */
import { z } from "zod";
import type { ModelContext } from "../../../model/context.ts";
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { type ChatPiece, readChatChunk, toFragment, toolCallSchema } from "../chat/chunk.ts";
import { ChatDecoder } from "../chat/decoder.ts";
import {
  type ChatMedia,
  type ChatMessage,
  chatCalls,
  chatMessages,
  chatToolNames,
  toChatChoice,
  toChatTool,
  toNativeMessage,
  withSentCalls,
} from "../chat/messages.ts";
import { isSilent } from "../common/blank.ts";
import { mediaUrl, resolveMedia } from "../common/media.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { ID_LENGTH, SentCalls } from "../common/names.ts";
import { checkChoice, continued, settings, unsupported, withChoice } from "../common/request.ts";
import { openaiUsage } from "../common/usage.ts";
import { wellFormedFormat } from "../common/well-formed.ts";

export type WorkersAIChatMessage = ChatMessage;

/** Calls as the platform takes them. It takes any name. */
const CALLS = chatCalls({ toName: (name) => name, idLength: ID_LENGTH });

export const workersAIFormat: FormatAdapter = wellFormedFormat({
  provider: "workers-ai",
  buildRequest(profile, context) {
    checkChoice("workers-ai", context);
    const offered = tools(context);
    const asked = output(context);
    const reserved = ["messages", "tools", ...Object.keys(asked)];
    if (offered.tools === undefined || offered.tool_choice !== undefined) reserved.push("tool_choice");
    const calls = new SentCalls(CALLS);
    return calls.carriedBy({
      messages: chatMessages(context, (messages) => toMessages(messages, profile, calls)),
      ...offered,
      stream: true,
      ...asked,
      ...settings(profile.parameters, reserved),
    });
  },
  extend(profile, request, messages) {
    const calls = new SentCalls(CALLS, request);
    return calls.carriedBy(continued(request, "messages", toMessages(messages, profile, calls)));
  },
  choose(request, choice) {
    const { tools: offered, tool_choice: _, ...rest } = request;
    if (choice === "none") return rest;
    const members = choice === "auto" ? {} : { tool_choice: toChatChoice(choice) };
    const without = { ...rest, ...defined({ tools: offered }) };
    return withChoice("workers-ai", without, choice, { names: chatToolNames(request), members });
  },
  decoder: () => new ChatDecoder("workers-ai", readPiece),
});

/**
 * Messages for Workers AI: the instructions are one leading system message, tool calls have the type `function` and their
 * arguments as JSON text.
 * @example await env.AI.run(model, workersAIAdapter.toModelMessages(context.systemInstructions, context.messages))
 */
export const workersAIAdapter: ModelFormatAdapter<{ messages: WorkersAIChatMessage[] }> = modelFormatAdapter(
  workersAIFormat,
  ["messages"],
);

/** The choice `none` leaves the tools out: not every model supports the option. */
function tools({ tools: offered, toolChoice }: ModelContext): JsonObject {
  if (offered.length === 0 || toolChoice === "none") return {};
  const choice = toolChoice === "auto" ? {} : { tool_choice: toChatChoice(toolChoice) };
  return { tools: offered.map(toChatTool), ...choice };
}

function output({ output: asked, tools: offered, toolChoice }: ModelContext): JsonObject {
  if (asked === undefined) return {};
  if (offered.length > 0 && toolChoice !== "none")
    throw unsupported("workers-ai", "a request for a structured reply that also offers tools");
  return { stream: false, response_format: { type: "json_schema", json_schema: asked.schema } };
}

function toMessages(
  messages: readonly ContextMessage[],
  profile: ModelProfile,
  calls: SentCalls,
): JsonObject[] {
  return messages
    .filter((message) => !isSilent(message))
    .map((message) => {
      // Replies have either key; in a request the models support only `reasoning`.
      const { reasoning_content: reasoning, ...sent } = toNativeMessage(
        withSentCalls(message, calls),
        profile,
        media,
      );
      return { ...defined({ reasoning }), ...sent };
    });
}

/** The chat models take images by value only, although the key is called `url`. */
const media: ChatMedia = {
  image(part) {
    const image = resolveMedia("workers-ai", part);
    if ("url" in image) throw unsupported("workers-ai", "an image by its address, only by value");
    return { type: "image_url", image_url: { url: mediaUrl(image) } };
  },
  file() {
    throw unsupported("workers-ai", "files, only images");
  },
};

const responseSchema = z.object({
  response: z.unknown().optional(),
  tool_calls: z.array(toolCallSchema).nullish(),
  usage: z.unknown().optional(),
  finish_reason: z.string().nullish(),
});

/** Reads a chunk, or the older shape `{response, tool_calls?, usage?}`. */
function readPiece(payload: JsonObject): ChatPiece | undefined {
  const isOlder = ("response" in payload || "tool_calls" in payload) && !("choices" in payload);
  if (!isOlder) return readChatChunk(payload);
  const { data } = responseSchema.safeParse(payload);
  if (data === undefined) return undefined;
  // A token that looks like a number comes as one, and JSON mode gives the value itself.
  const response = data.response ?? "";
  return {
    isReply: true,
    text: typeof response === "string" ? response : JSON.stringify(response),
    toolCalls: data.tool_calls?.map(toFragment),
    usage: openaiUsage(data.usage),
    finish: data.finish_reason,
  };
}
