/** The chat message shape that Workers AI and OpenAI's Chat Completions share. Optional keys are absent, never undefined. */

import type { ToolSpec } from "../../../model/context.ts";
import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";

export type ChatToolCall = {
  id: string;
  type: "function";
  /** `arguments` is JSON text. */
  function: { name: string; arguments: string };
};

export type ChatMessage = {
  role: ContextMessage["role"];
  content: string;
  name?: string;
  tool_call_id?: string;
  tool_calls?: ChatToolCall[];
};

export function toChatMessage(message: ContextMessage): ChatMessage {
  const { role, content, name, toolCallId, toolCalls } = message;
  return {
    role,
    content,
    ...defined({ name, tool_call_id: toolCallId }),
    ...(toolCalls === undefined || toolCalls.length === 0
      ? {}
      : { tool_calls: toolCalls.map(toChatToolCall) }),
  };
}

/** The instructions as one leading system message, joined by a blank line; no message if there are none. */
export function systemMessages(systemInstructions: readonly string[]): ChatMessage[] {
  return systemInstructions.length === 0
    ? []
    : [{ role: "system", content: systemInstructions.join("\n\n") }];
}

export function toChatTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  return { type: "function", function: { name, description, parameters: inputSchema } };
}

function toChatToolCall({ id, name, arguments: input }: ToolCall): ChatToolCall {
  return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
}
