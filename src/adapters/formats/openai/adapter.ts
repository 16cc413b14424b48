/**
 * OpenAI's Chat Completions, for OpenAI and every compatible server.
 *
 * OPENAI-1  Names and ids are converted to fit the API, in the same way everywhere, so an invalid tool call cannot break later requests.
 *           Each call gets an id that is unique in the request. A tool that is *offered* under an invalid name is refused, because the
 *           model could not call it.
 * OPENAI-2  Only OpenAI's own server gets keys that other servers do not support (`prompt_cache_key`).
 * OPENAI-3  Reasoning and members of a call are sent back with the reply that called tools, to the model that gave them, under their
 *           original keys.
 */
import type { ModelContext } from "../../../model/context.ts";
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { readChatChunk } from "../chat/chunk.ts";
import { ChatDecoder } from "../chat/decoder.ts";
import {
  type ChatMedia,
  chatCalls,
  chatMessages,
  chatToolNames,
  toChatChoice,
  toChatTool,
  toNativeMessage,
  withSentCalls,
} from "../chat/messages.ts";
import { isBlank, isSilent } from "../common/blank.ts";
import { fileName, mediaUrl, plainType, resolveMedia } from "../common/media.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { fitLength, plainName, SentCalls } from "../common/names.ts";
import { checkChoice, checkNames, continued, settings, unsupported, withChoice } from "../common/request.ts";
import { wellFormedFormat } from "../common/well-formed.ts";
import { fitsStrict, withoutLookaround } from "./openai-schema.ts";

/** Formats of sound, by media type. */
const SOUND: ReadonlyMap<string, string> = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/wave", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"],
]);

/** Media: sound as `input_audio`, other files as `file`, both by value only. */
const openaiMedia: ChatMedia = {
  image: (part) => ({ type: "image_url", image_url: { url: mediaUrl(resolveMedia("openai", part)) } }),
  file(part) {
    const media = resolveMedia("openai", part);
    if ("url" in media) throw unsupported("openai", "a file by its address, only by value");
    const type = plainType(media.mediaType) ?? "";
    if (type.startsWith("video/")) throw unsupported("openai", "video");
    if (!type.startsWith("audio/")) {
      const file = { filename: fileName(part, media.mediaType), file_data: mediaUrl(media) };
      return { type: "file", file };
    }
    const format = SOUND.get(type);
    if (format !== undefined) return { type: "input_audio", input_audio: { data: media.base64, format } };
    throw unsupported("openai", `audio of the type "${media.mediaType}", only WAV and MP3`);
  },
};

/** Calls as OpenAI takes them: ids of at most 40 characters, with room for a number behind an id. */
const CALLS = chatCalls({ toName: plainName, idLength: 34 });

const MAX_CACHE_KEY = 64;
/** Parameters that the API refuses if no tool is offered. */
export const TOOL_PARAMETERS = ["tool_choice", "parallel_tool_calls"];

export const openaiFormat: FormatAdapter = wellFormedFormat({
  provider: "openai",
  buildRequest(profile, context) {
    checkNames("openai", context);
    checkChoice("openai", context);
    const calls = new SentCalls(CALLS);
    return calls.carriedBy({
      model: profile.modelId,
      messages: chatMessages(context, (messages) => toMessages(messages, profile, calls)),
      ...tools(context),
      ...output(context),
      ...options(profile, context),
    });
  },
  extend(profile, request, messages) {
    const calls = new SentCalls(CALLS, request);
    return calls.carriedBy(continued(request, "messages", toMessages(messages, profile, calls)));
  },
  choose: (request, choice) =>
    withChoice("openai", request, choice, {
      names: chatToolNames(request),
      members: { tool_choice: toChatChoice(choice) },
    }),
  decoder: () => new ChatDecoder("openai", readChatChunk),
});

/** Messages for Chat Completions. The instructions are one leading system message. */
export const openaiAdapter: ModelFormatAdapter<{ messages: JsonObject[] }> = modelFormatAdapter(
  openaiFormat,
  ["messages"],
);

function toMessages(
  messages: readonly ContextMessage[],
  profile: ModelProfile,
  calls: SentCalls,
): JsonObject[] {
  return messages
    .filter((message) => !isSilent(message))
    .map((message) => {
      const { name, ...fitted } = withSentCalls(message, calls);
      const speaker = name === undefined || message.role === "tool" ? {} : { name: plainName(name) };
      const sent = toNativeMessage({ ...fitted, ...speaker }, profile, openaiMedia);
      return fitted.toolCalls !== undefined && isBlank(message.content) ? { ...sent, content: null } : sent;
    });
}

function tools({ tools: offered, toolChoice }: ModelContext): JsonObject {
  if (offered.length === 0) return {};
  return {
    tools: offered.map((tool) => toChatTool({ ...tool, inputSchema: withoutLookaround(tool.inputSchema) })),
    tool_choice: toChatChoice(toolChoice),
  };
}

function output({ output: asked }: ModelContext): JsonObject {
  if (asked === undefined) return {};
  const schema = withoutLookaround(asked.schema);
  const format = { name: asked.name, schema, strict: fitsStrict(schema) };
  return { response_format: { type: "json_schema", json_schema: format } };
}

function options(profile: ModelProfile, context: ModelContext): JsonObject {
  const { parameters } = profile;
  const reserved = ["model", "messages", "tools"];
  if (context.tools.length === 0) reserved.push(...TOOL_PARAMETERS);
  if (context.toolChoice !== "auto") reserved.push("tool_choice");
  if (context.output !== undefined) reserved.push("response_format");
  const given = settings({ ...cacheKey(profile, context), ...parameters }, reserved);
  const { stream = true, stream_options: asked = { include_usage: true }, ...rest } = given;
  const hasOptions = stream === true && parameters?.stream_options !== null;
  return { stream, ...(hasOptions ? { stream_options: asked } : {}), ...rest };
}

/** Leads requests that begin alike to the same cache of OpenAI (OPENAI-2). */
export function cacheKey({ baseUrl }: ModelProfile, { cache }: ModelContext): JsonObject {
  if (cache === undefined || baseUrl !== undefined) return {};
  return { prompt_cache_key: fitLength(cache.key, MAX_CACHE_KEY) };
}
