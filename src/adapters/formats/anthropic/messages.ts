/** Context messages as turns of the Messages API. Pure. */

import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { jsonOf, objects } from "../common/json.ts";
import { carriesMedia } from "../common/media.ts";
import { type CallForm, ID_LENGTH, plainName, type SentCalls } from "../common/names.ts";
import { nativeContent, nativeParts } from "../common/native.ts";
import { type SpeakerTurn, spokenParts } from "../common/turns.ts";
import { toBlock } from "./media.ts";

export const ANTHROPIC_NAME_LENGTH = 128;

/** Result of a failed call without content, because the API requires content. */
const FAILED = "The tool failed.";

/** Calls as the API takes them. */
export const ANTHROPIC_CALLS: CallForm = {
  toName: (name) => plainName(name, ANTHROPIC_NAME_LENGTH),
  idLength: ID_LENGTH,
  callsIn({ messages }) {
    const blocks = objects(messages).flatMap(({ content }) => objects(content));
    return blocks.flatMap(({ type, id, name }) =>
      type === "tool_use" ? [{ id: String(id), name: String(name) }] : [],
    );
  },
};

/** Builds one turn per message, empty for an empty message. `calls` were sent before. */
export function anthropicTurns(
  profile: ModelProfile,
  messages: readonly ContextMessage[],
  calls: SentCalls,
): SpeakerTurn[] {
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

function replyBlocks(profile: ModelProfile, message: ContextMessage, calls: SentCalls): JsonObject[] {
  const toCall = (call: ToolCall) => ({
    type: "tool_use",
    ...calls.add(call),
    input: jsonOf(call.arguments),
  });
  const own = nativeParts(message, profile);
  const toText = (text: string, extra: JsonObject) => ({ type: "text", text, ...extra });
  if (own !== undefined) return nativeContent(own, toCall, toText);
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
