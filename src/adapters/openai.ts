/**
 * OpenAI's Chat Completions, for OpenAI and every compatible server.
 *
 * OPENAI-1  Names and ids are made to fit what the API accepts, the same way wherever they occur, so one odd tool call
 *           of a model cannot spoil the rest of its conversation. A tool that is *offered* under an impossible name is
 *           refused instead: the model could not call it.
 */
import type { ContextMessage } from "../memory/types.ts";
import { DramatisError } from "../shared/errors.ts";
import type { JsonObject } from "../shared/json.ts";
import { readChatChunk } from "./chat-chunk.ts";
import {
  appendMessages,
  type ChatMessage,
  type ChatToolCall,
  settings,
  systemMessages,
  toChatMessage,
  toChatTool,
} from "./chat-messages.ts";
import { ChatStream } from "./chat-stream.ts";
import { fingerprint } from "./text.ts";
import type { FormatAdapter, ModelContext, ModelProfile } from "./types.ts";

const MAX_NAME = 64;
const MAX_CALL_ID = 40;
/** Parameters that the API refuses where no tool is offered. */
const TOOL_PARAMETERS = ["tool_choice", "parallel_tool_calls"];

export const openaiFormat: FormatAdapter = {
  provider: "openai",
  buildRequest(profile, context) {
    const messages = [
      ...systemMessages(context.systemInstructions),
      ...context.messages.map(toOpenAIMessage),
    ];
    return { model: profile.modelId, messages, ...toolsOf(context), ...options(profile, context) };
  },
  extend: (_profile, request, messages) => appendMessages(request, messages.map(toOpenAIMessage)),
  decoder: () => new ChatStream("openai", readChatChunk),
};

function toolsOf({ tools, toolChoice }: ModelContext): JsonObject {
  if (tools.length === 0) return {};
  const misnamed = tools.find(({ name }) => name !== toName(name));
  if (misnamed !== undefined) {
    throw new DramatisError(
      "UNSUPPORTED",
      `OpenAI takes no tool named "${misnamed.name}": use 1 to ${MAX_NAME} letters, digits, "_" and "-".`,
    );
  }
  return { tools: tools.map(toChatTool), tool_choice: toolChoice };
}

function options(profile: ModelProfile, { tools, toolChoice }: ModelContext): JsonObject {
  const reserved = ["model", "messages", "tools", ...(tools.length === 0 ? TOOL_PARAMETERS : [])];
  if (toolChoice === "none") reserved.push("tool_choice");
  const { stream = true, stream_options: asked, ...rest } = settings(profile.parameters, reserved);
  const keepsOptions = stream === true && profile.parameters?.stream_options !== null;
  return {
    stream,
    ...(keepsOptions ? { stream_options: asked ?? { include_usage: true } } : {}),
    ...rest,
  };
}

function toOpenAIMessage(message: ContextMessage): JsonObject {
  const {
    name,
    content,
    tool_calls: calls,
    tool_call_id: callId,
    ...chat
  }: ChatMessage = toChatMessage(message);
  return {
    ...chat,
    content: calls !== undefined && content === "" ? null : content,
    ...(name === undefined || chat.role === "tool" ? {} : { name: toName(name) }),
    ...(callId === undefined ? {} : { tool_call_id: toCallId(callId) }),
    ...(calls === undefined ? {} : { tool_calls: calls.map(toToolCall) }),
  };
}

function toToolCall({ id, type, function: called }: ChatToolCall): ChatToolCall {
  return { id: toCallId(id), type, function: { ...called, name: toName(called.name) } };
}

function toName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, MAX_NAME) || "unnamed";
}

/** Ids that another provider gave may be longer than this one takes. */
function toCallId(id: string): string {
  return id.length <= MAX_CALL_ID ? id : `${id.slice(0, MAX_CALL_ID - 9).toWellFormed()}_${fingerprint(id)}`;
}
