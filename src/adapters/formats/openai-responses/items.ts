/** A conversation as the input items of the Responses API. Pure. */
import type { ContextMessage, ContextPart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { CallIds } from "../common/call-ids.ts";
import { carriesMedia, fileName, mediaUrl, resolveMedia } from "../common/media-source.ts";
import { NAME_LENGTH, plainName } from "../common/names.ts";
import { unsupported } from "../common/native.ts";
import { attributed } from "../common/speaker.ts";
import { spokenParts } from "../common/turns.ts";
import { nativeItems } from "./native.ts";

const PROVIDER = "openai-responses";

/** Items of messages that follow the items `earlier`. */
export function toItems(
  messages: readonly ContextMessage[],
  profile: ModelProfile,
  earlier: readonly Json[] = [],
): JsonObject[] {
  const items: JsonObject[] = [];
  const ids = new CallIds(earlier.flatMap(callIdOf));
  const toCall = ({ id, name, arguments: input }: ToolCall): JsonObject => ({
    type: "function_call",
    call_id: ids.ofCall(id),
    name: plainName(name, NAME_LENGTH),
    arguments: JSON.stringify(input),
  });
  const toResult = ({ toolCallId = "", content, parts }: ContextMessage): JsonObject => {
    const id = ids.ofResult(toolCallId);
    // A program that the model wrote wants the results of its calls addressed to it.
    const { caller } = findCall(items, id) ?? findCall(earlier, id) ?? {};
    const addressed = caller === undefined ? {} : { caller };
    const output = parts === undefined ? content : parts.map(toInput);
    return { type: "function_call_output", call_id: id, output, ...addressed };
  };
  for (const message of messages) {
    if (message.role === "tool") items.push(toResult(message));
    else if (message.role === "assistant") items.push(...replyItems(message, profile, toCall));
    else items.push({ role: message.role, content: contentOf(message) });
  }
  return items;
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
  const isSaid = content !== "" || name !== undefined || toolCalls.length === 0;
  return [...(isSaid ? [{ role, content: attributed(name, content) }] : []), ...toolCalls.map(toCall)];
}

function callIdOf(item: Json): string[] {
  return isJsonObject(item) && item.type === "function_call" && typeof item.call_id === "string"
    ? [item.call_id]
    : [];
}

function findCall(items: readonly Json[], id: string): JsonObject | undefined {
  const call = items.findLast(
    (item) => isJsonObject(item) && item.type === "function_call" && item.call_id === id,
  );
  return isJsonObject(call) ? call : undefined;
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
  const kind = part.mediaType ?? ("mediaType" in media ? media.mediaType : "");
  if (/^(?:audio|video)\//i.test(kind)) throw unsupported(PROVIDER, `media of the type "${kind}"`);
  return "url" in media
    ? { type: "input_file", file_url: media.url }
    : { type: "input_file", filename: fileName(part, media.mediaType), file_data: mediaUrl(media) };
}
