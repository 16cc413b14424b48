/** Context messages as turns of the Messages API. Pure. */

import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { CallIds } from "../common/call-ids.ts";
import { plainName } from "../common/names.ts";
import { type OwnPart, ownParts, unsupported } from "../common/native.ts";
import { jsonOf } from "../common/request.ts";
import { type Exchange, spokenParts } from "../common/turns.ts";
import { toBlock } from "./media.ts";

/** Characters of a name. */
export const NAME_LENGTH = 128;

/** What a failed call gives back if it says nothing: the API wants to be told something. */
const FAILED = "The tool failed.";

/** One turn per message that follows the messages `earlier`, empty where a message says nothing. */
export function toMessages(
  profile: ModelProfile,
  messages: readonly ContextMessage[],
  earlier: readonly Json[] = [],
): Exchange[] {
  const ids = new CallIds(earlier.flatMap(callIdsOf));
  return messages.map((message): Exchange => {
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

/** The ids of the calls in a message. */
function callIdsOf(message: Json): string[] {
  const content = isJsonObject(message) ? message.content : undefined;
  if (!Array.isArray(content)) return [];
  return content.flatMap((block) =>
    isJsonObject(block) && block.type === "tool_use" && typeof block.id === "string" ? [block.id] : [],
  );
}

function replyBlocks(profile: ModelProfile, message: ContextMessage, ids: CallIds): JsonObject[] {
  const { toolCalls = [] } = message;
  const own = ownParts(message, profile);
  if (own !== undefined) return own.flatMap((part) => toOwnBlocks(part, ids));
  const parts = spokenParts(message);
  if (parts.some(({ type }) => type !== "text")) {
    throw unsupported("anthropic", "images or files in an assistant's message");
  }
  return [...parts.map(toBlock), ...toolCalls.map((call) => toCall(call, ids))];
}

/** A part of a reply in its own words. Blank texts are left out: the API refuses what it has itself sent. */
function toOwnBlocks(part: OwnPart, ids: CallIds): JsonObject[] {
  if (part.type === "block") return [part.value];
  if (part.type === "tool-call") return [{ ...toCall(part.call, ids), ...part.extra }];
  return part.text.trim() === "" ? [] : [{ type: "text", text: part.text, ...part.extra }];
}

function toCall({ id, name, arguments: input }: ToolCall, ids: CallIds): JsonObject {
  return { type: "tool_use", id: ids.ofCall(id), name: plainName(name, NAME_LENGTH), input: jsonOf(input) };
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
    ...defined({ content: given }),
    ...(isFailed ? { is_error: true } : {}),
  };
}
