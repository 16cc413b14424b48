/** Context messages as turns of the Messages API. Pure. */
import type { ContextMessage, NativePart, ToolCall } from "../../memory/types.ts";
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import type { CallIds } from "../call-ids.ts";
import { nativeParts, unsupported } from "../native.ts";
import { jsonOf, spokenParts, type Turn } from "../turns.ts";
import type { ModelProfile } from "../types.ts";
import { toBlock } from "./media.ts";

const MAX_NAME = 128;

/** What a failed call gives back if it says nothing: the API wants to be told something. */
const FAILED = "The tool failed.";

/** 1 to 128 letters, digits, `_` and `-`. */
export function toName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, MAX_NAME) || "unnamed";
}

/** One turn per message, empty where a message says nothing. */
export function toTurns(profile: ModelProfile, messages: readonly ContextMessage[], ids: CallIds): Turn[] {
  return messages.map((message): Turn => {
    switch (message.role) {
      case "assistant":
        return { role: "assistant", blocks: replyBlocks(profile, message, ids) };
      case "tool":
        return { role: "user", blocks: [toResult(message, ids)] };
      case "user":
      case "system":
        return { role: "user", blocks: spokenParts(message).map(toBlock) };
      default:
        return message.role satisfies never;
    }
  });
}

/** The ids of all calls that a request has. */
export function callIdsIn(messages: readonly Json[]): string[] {
  return messages.flatMap((message) => {
    const content = isJsonObject(message) ? message.content : undefined;
    if (!Array.isArray(content)) return [];
    return content.flatMap((block) =>
      isJsonObject(block) && block.type === "tool_use" && typeof block.id === "string" ? [block.id] : [],
    );
  });
}

function replyBlocks(profile: ModelProfile, message: ContextMessage, ids: CallIds): JsonObject[] {
  const { toolCalls = [] } = message;
  const native = nativeParts(message, profile);
  if (native !== undefined) return nativeBlocks(native, message, ids);
  const parts = spokenParts(message);
  if (parts.some(({ type }) => type !== "text")) {
    throw unsupported("anthropic", "images or files in an assistant's message");
  }
  return [...parts.map(toBlock), ...toolCalls.map((call) => toCall(call, ids))];
}

/** A reply in its own words. Blank texts are left out: the API refuses what it has itself sent. */
function nativeBlocks(parts: readonly NativePart[], message: ContextMessage, ids: CallIds): JsonObject[] {
  let read = 0;
  return parts.flatMap((part): JsonObject[] => {
    if (part.type === "block") return [jsonOf(part.value)];
    const extra = jsonOf(part.extra ?? {});
    if (part.type === "tool-call") {
      const call = message.toolCalls?.[part.index];
      return call === undefined ? [] : [{ ...toCall(call, ids), ...extra }];
    }
    read += part.length;
    const text = message.content.slice(read - part.length, read);
    return text.trim() === "" ? [] : [{ type: "text", text, ...extra }];
  });
}

function toCall({ id, name, arguments: input }: ToolCall, ids: CallIds): JsonObject {
  return { type: "tool_use", id: ids.ofCall(id), name: toName(name), input: jsonOf(input) };
}

function toResult(message: ContextMessage, ids: CallIds): JsonObject {
  const { content, parts, toolCallId = "", metadata } = message;
  const isFailed = metadata?.isSuccess === false;
  const said =
    parts === undefined ? (content.trim() === "" ? undefined : content) : spokenParts(message).map(toBlock);
  const given = said === undefined || said.length === 0 ? (isFailed ? FAILED : undefined) : said;
  return {
    type: "tool_result",
    tool_use_id: ids.ofResult(toolCallId),
    ...(given === undefined ? {} : { content: given }),
    ...(isFailed ? { is_error: true } : {}),
  };
}
