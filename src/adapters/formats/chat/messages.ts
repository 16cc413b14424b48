/** Chat messages, as Workers AI and OpenAI's Chat Completions take them. Optional keys are absent, never undefined. Pure. */
import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { NO_MESSAGE, orOpening, shownParts } from "../common/blank.ts";
import { filled, membersOf, objects } from "../common/json.ts";
import { type ContextMedia, carriesMedia } from "../common/media.ts";
import type { CallForm, SentCalls } from "../common/names.ts";
import { joinedInstructions, withoutAuthority } from "../common/turns.ts";
import { nativeReasoning } from "./reasoning.ts";

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

function toChatMessage(message: ContextMessage): ChatMessage {
  const { role, content, name, toolCallId, toolCalls = [] } = message;
  const calls = toolCalls.map(({ id, name, arguments: input }): ChatToolCall => {
    return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
  });
  return {
    role,
    content,
    ...defined({ name, tool_call_id: toolCallId }),
    ...filled({ tool_calls: calls }),
  };
}

/**
 * Returns the form of calls in a chat, which lists them separately from the text of their message. Some models use their own form of ids,
 * such as `functions.lookup:0`, and require it in later requests.
 */
export function chatCalls(form: Pick<CallForm, "toName" | "idLength">): CallForm {
  return {
    ...form,
    notInId: /[^!-~]/gu,
    callsIn: ({ messages }) =>
      objects(messages).flatMap(({ tool_calls: calls }) =>
        objects(calls).map(({ id, function: called }) => ({
          id: String(id),
          name: String(membersOf(called).name),
        })),
      ),
  };
}

export function withSentCalls(message: ContextMessage, sent: SentCalls): ContextMessage {
  const { toolCalls = [], toolCallId: _id, ...rest } = message;
  const calls = toolCalls.map((call) => ({ ...call, ...sent.add(call) }));
  return {
    ...rest,
    ...filled({ toolCalls: calls }),
    ...(message.role === "tool" ? { toolCallId: sent.answeredBy(message).id } : {}),
  };
}

export interface ChatMedia {
  image(part: ContextMedia): JsonObject;
  file(part: ContextMedia): JsonObject;
}

/** Builds a message with its media, and with the reasoning that its model must get back. */
export function toNativeMessage(given: ContextMessage, profile: ModelProfile, media: ChatMedia): JsonObject {
  const message = withoutAuthority(given);
  const { tool_calls: calls, ...chat } = toChatMessage(message);
  const own = nativeReasoning(message, profile);
  const parts = carriesMedia(profile.provider, message) ? message.parts : undefined;
  const content =
    parts &&
    shownParts({ ...message, parts }).map((part): JsonObject => {
      return part.type === "text" ? { type: "text", text: part.text } : media[part.type](part);
    });
  return {
    ...own.message,
    ...chat,
    ...defined({ content }),
    ...(calls && { tool_calls: calls.map((call, index) => ({ ...own.calls[index], ...call })) }),
  };
}

/** Builds the messages of a chat. The instructions become one leading system message, if there are any. Silent messages are dropped. */
export function chatMessages(
  { systemInstructions, messages }: ModelContext,
  toMessages: (messages: readonly ContextMessage[]) => JsonObject[],
): JsonObject[] {
  const instructions = joinedInstructions(systemInstructions);
  return [
    ...(instructions === "" ? [] : [{ role: "system", content: instructions }]),
    ...orOpening(toMessages(messages), { role: "user", content: NO_MESSAGE }),
  ];
}

export function toChatChoice(toolChoice: ModelContext["toolChoice"]): Json {
  return typeof toolChoice === "string"
    ? toolChoice
    : { type: "function", function: { name: toolChoice.name } };
}

export function chatToolNames({ tools }: JsonObject): unknown[] {
  return objects(tools).map((tool) => membersOf(tool.function).name);
}

export function toChatTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  return { type: "function", function: { name, description, parameters: inputSchema } };
}
