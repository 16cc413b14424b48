/**
 * OpenAI's Chat Completions, for OpenAI and every compatible server.
 *
 * OPENAI-1  Names and ids are made to fit what the API accepts, the same way wherever they occur, so one odd tool call
 *           of a model cannot spoil the rest of its conversation. A tool that is *offered* under an impossible name is
 *           refused instead: the model could not call it.
 * OPENAI-2  Only OpenAI's own server is sent what other servers do not know (`prompt_cache_key`).
 * OPENAI-3  Reasoning and what stood beside a call go back with the reply that called tools, to the model that gave
 *           them, under the keys under which they came.
 */

import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { fitLength, NAME_LENGTH, plainName } from "../common/names.ts";
import { ReplyStream } from "../common/reply-stream.ts";
import { continued, settings } from "../common/request.ts";
import { checkChoice, checkNames } from "../common/tools.ts";
import { readChatChunk } from "./chunk.ts";
import { chatContent, openaiMedia } from "./content.ts";
import { type ChatMessage, systemMessages, toChatMessage, toChatTool } from "./messages.ts";
import { chatNative } from "./native.ts";
import { ChatReader } from "./reader.ts";
import { fitsStrict, withoutLookaround } from "./strict-schema.ts";

const MAX_CALL_ID = 40;
/** Characters of a `prompt_cache_key`. */
const MAX_CACHE_KEY = 64;
/** Parameters that the API refuses where no tool is offered. */
const TOOL_PARAMETERS = ["tool_choice", "parallel_tool_calls"];

export const openaiFormat: FormatAdapter = {
  provider: "openai",
  buildRequest(profile, context) {
    checkNames("openai", context, NAME_LENGTH);
    checkChoice("openai", context);
    const messages = [
      ...systemMessages(context.systemInstructions),
      ...context.messages.map((message) => toOpenAIMessage(message, profile)),
    ];
    return {
      model: profile.modelId,
      messages,
      ...toolsOf(context),
      ...outputOf(context),
      ...options(profile, context),
    };
  },
  extend: (profile, request, messages) =>
    continued(
      request,
      "messages",
      messages.map((message) => toOpenAIMessage(message, profile)),
    ),
  decoder: () => new ReplyStream("openai", new ChatReader("openai", readChatChunk)),
};

function toolsOf({ tools, toolChoice }: ModelContext): JsonObject {
  if (tools.length === 0) return {};
  const choice =
    typeof toolChoice === "string" ? toolChoice : { type: "function", function: { name: toolChoice.name } };
  return { tools: tools.map(toOpenAITool), tool_choice: choice };
}

function toOpenAITool(tool: ToolSpec): JsonObject {
  return toChatTool({ ...tool, inputSchema: withoutLookaround(tool.inputSchema) });
}

function outputOf({ output }: ModelContext): JsonObject {
  if (output === undefined) return {};
  const { name } = output;
  const schema = withoutLookaround(output.schema);
  return {
    response_format: { type: "json_schema", json_schema: { name, schema, strict: fitsStrict(schema) } },
  };
}

function options(profile: ModelProfile, { tools, toolChoice, output, cache }: ModelContext): JsonObject {
  const reserved = ["model", "messages", "tools", ...(tools.length === 0 ? TOOL_PARAMETERS : [])];
  if (toolChoice !== "auto") reserved.push("tool_choice");
  if (output !== undefined) reserved.push("response_format");
  const { stream = true, stream_options: asked, ...rest } = settings(profile.parameters, reserved);
  const keepsOptions = stream === true && profile.parameters?.stream_options !== null;
  return {
    stream,
    ...(keepsOptions ? { stream_options: asked ?? { include_usage: true } } : {}),
    ...cacheKey(profile, cache),
    ...rest,
  };
}

/** What leads requests that begin alike to the same cache. A parameter of the profile goes before it, `null` leaves it out. */
export function cacheKey({ baseUrl, parameters }: ModelProfile, cache: ModelContext["cache"]): JsonObject {
  if (cache === undefined || baseUrl !== undefined || parameters?.prompt_cache_key === null) return {};
  return { prompt_cache_key: fitLength(cache.key, MAX_CACHE_KEY) };
}

function toOpenAIMessage(message: ContextMessage, profile: ModelProfile): JsonObject {
  const {
    name,
    content,
    tool_calls: calls,
    tool_call_id: callId,
    ...chat
  }: ChatMessage = toChatMessage(message);
  const native = chatNative(message, profile);
  return {
    ...native.message,
    ...chat,
    content: calls !== undefined && content === "" ? null : chatContent("openai", message, openaiMedia),
    ...(name === undefined || chat.role === "tool" ? {} : { name: plainName(name, NAME_LENGTH) }),
    ...(callId === undefined ? {} : { tool_call_id: fitLength(callId, MAX_CALL_ID) }),
    ...(calls === undefined
      ? {}
      : {
          tool_calls: calls.map(({ id, type, function: called }, index) => ({
            ...native.calls[index],
            id: fitLength(id, MAX_CALL_ID),
            type,
            function: { ...called, name: plainName(called.name, NAME_LENGTH) },
          })),
        }),
  };
}
