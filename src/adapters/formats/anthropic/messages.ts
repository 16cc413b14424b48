/** Context messages as turns of the Messages API. Pure. */

import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { jsonOf, objects } from "../common/json.ts";
import { carriesMedia } from "../common/media.ts";
import { plainName, type SentCall, SentCalls } from "../common/names.ts";
import { ownContent, ownParts } from "../common/native.ts";
import { type SpeakerTurn, spokenParts } from "../common/turns.ts";
import { toBlock } from "./media.ts";

export const ANTHROPIC_NAME_LENGTH = 128;

/** Result of a failed call without content: the API demands one. */
const FAILED = "The tool failed.";

/** Builds one turn per message, empty for an empty message. `earlier` are the messages that were sent before. */
export function anthropicTurns(
  profile: ModelProfile,
  messages: readonly ContextMessage[],
  earlier: readonly Json[] = [],
): SpeakerTurn[] {
  const calls = new SentCalls(callsIn(earlier), (name) => plainName(name, ANTHROPIC_NAME_LENGTH));
  return messages.map((message): SpeakerTurn => {
    switch (message.role) {
      case "assistant":
        return { role: "assistant", blocks: replyBlocks(profile, message, calls) };
      case "tool":
        return { role: "user", blocks: [toResult(message, calls)] };
      case "user":
      case "system":
        return { role: "user", blocks: spokenParts(message).map(toBlock) };
      default:
        return message.role satisfies never;
    }
  });
}

function callsIn(messages: readonly Json[]): SentCall[] {
  const blocks = objects(messages).flatMap(({ content }) => objects(content));
  return blocks.flatMap(({ type, id, name }) =>
    type === "tool_use" ? [{ id: String(id), name: String(name) }] : [],
  );
}

function replyBlocks(profile: ModelProfile, message: ContextMessage, calls: SentCalls): JsonObject[] {
  const toCall = (call: ToolCall) => ({
    type: "tool_use",
    ...calls.add(call),
    input: jsonOf(call.arguments),
  });
  const own = ownParts(message, profile);
  // The API refuses blank texts, even those that it gave itself.
  const toText = (text: string, extra: JsonObject) =>
    text.trim() === "" ? [] : [{ type: "text", text, ...extra }];
  if (own !== undefined) return ownContent(own, toCall, toText);
  carriesMedia("anthropic", message);
  return [...spokenParts(message).map(toBlock), ...(message.toolCalls ?? []).map(toCall)];
}

function toResult(message: ContextMessage, calls: SentCalls): JsonObject {
  const isFailed = message.metadata?.isSuccess === false;
  const blocks = spokenParts(message).map(toBlock);
  const content = message.parts === undefined && blocks.length > 0 ? message.content : blocks;
  return {
    type: "tool_result",
    tool_use_id: calls.answeredBy(message).id,
    ...(content.length > 0 ? { content } : isFailed ? { content: FAILED } : {}),
    ...(isFailed ? { is_error: true } : {}),
  };
}
