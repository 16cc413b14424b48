/** Context messages as input items of the Responses API. Pure. */
import type { ContextMessage, ContextPart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { isBlank, isSilent, shownParts } from "../common/blank.ts";
import { objects } from "../common/json.ts";
import { carriesMedia, fileName, mediaUrl, resolveMedia } from "../common/media.ts";
import { type CallForm, ID_LENGTH, plainName, type SentCalls } from "../common/names.ts";
import { unsupported } from "../common/request.ts";
import { attributed, spokenParts, withoutAuthority } from "../common/turns.ts";
import { nativeItems } from "./native.ts";

const PROVIDER = "openai-responses";

export const RESPONSES_CALLS: CallForm = {
  toName: plainName,
  idLength: ID_LENGTH,
  callsIn({ input }) {
    const calls = objects(input).filter(isCall);
    return calls.map(({ call_id, name }) => ({ id: String(call_id), name: String(name) }));
  },
};

/** Builds the items of messages. `calls` and `earlier` were sent before. */
export function toItems(
  messages: readonly ContextMessage[],
  profile: ModelProfile,
  calls: SentCalls,
  earlier: readonly Json[] = [],
): JsonObject[] {
  const items = objects(earlier);
  const sent = items.length;
  const toCall = (call: ToolCall): JsonObject => {
    const { id, name } = calls.add(call);
    return { type: "function_call", call_id: id, name, arguments: JSON.stringify(call.arguments) };
  };
  const toResult = (message: ContextMessage): JsonObject => {
    const { id } = calls.answeredBy(message);
    // The result of a call that the model's own program made must be addressed to that program.
    const call = items.findLast((item) => isCall(item) && item.call_id === id);
    const output = message.parts === undefined ? message.content : shownParts(message).map(toInput);
    return {
      type: "function_call_output",
      call_id: id,
      output,
      ...defined({ caller: call?.caller ?? undefined }),
    };
  };
  for (const message of messages.map(withoutAuthority)) {
    if (message.role === "tool") items.push(toResult(message));
    else if (message.role === "assistant") items.push(...replyItems(message, profile, toCall));
    else if (!isSilent(message)) items.push({ role: message.role, content: contentOf(message) });
  }
  return items.slice(sent);
}

function isCall({ type }: JsonObject): boolean {
  return type === "function_call";
}

function replyItems(
  message: ContextMessage,
  profile: ModelProfile,
  toCall: (call: ToolCall) => JsonObject,
): JsonObject[] {
  carriesMedia(PROVIDER, message);
  const native = nativeItems(message, profile, toCall);
  if (native !== undefined) return native;
  const { role, name, content, toolCalls = [] } = message;
  const text = isBlank(content) ? attributed(name, "").trimEnd() : attributed(name, content);
  const isSpoken = text !== "" && !isSilent(message);
  return [...(isSpoken ? [{ role, content: text }] : []), ...toolCalls.map(toCall)];
}

function contentOf(message: ContextMessage): Json {
  return carriesMedia(PROVIDER, message)
    ? spokenParts(message).map(toInput)
    : attributed(message.name, message.content);
}

function toInput(part: ContextPart): JsonObject {
  if (part.type === "text") return { type: "input_text", text: part.text };
  const media = resolveMedia(PROVIDER, part);
  if (part.type === "image") return { type: "input_image", detail: "auto", image_url: mediaUrl(media) };
  const type = media.mediaType ?? "";
  if (/^(?:audio|video)\//i.test(type)) throw unsupported(PROVIDER, `media of the type "${type}"`);
  return "url" in media
    ? { type: "input_file", file_url: media.url }
    : { type: "input_file", filename: fileName(part, media.mediaType), file_data: mediaUrl(media) };
}
