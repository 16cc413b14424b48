/** A conversation as the input items of the Responses API. Pure. */
import type { ContextMessage, ToolCall } from "../../memory/types.ts";
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import { CallIds } from "../call-ids.ts";
import { mediaUrl, resolveMedia } from "../media-source.ts";
import { unsupported } from "../native.ts";
import { mediaParts } from "../openai/content.ts";
import { toName } from "../openai/names.ts";
import { attributed } from "../speaker.ts";
import type { ModelProfile } from "../types.ts";
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
    name: toName(name),
    arguments: JSON.stringify(input),
  });
  const toResult = ({ toolCallId = "", content }: ContextMessage): JsonObject => {
    const id = ids.ofResult(toolCallId);
    // A program that the model wrote wants the results of its calls addressed to it.
    const { caller } = findCall(items, id) ?? findCall(earlier, id) ?? {};
    const addressed = caller === undefined ? {} : { caller };
    return { type: "function_call_output", call_id: id, output: content, ...addressed };
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
  mediaParts(PROVIDER, message);
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
  const parts = mediaParts(PROVIDER, message);
  const { name, content } = message;
  if (parts === undefined) return attributed(name, content);
  const speaker = name === undefined ? [] : [{ type: "input_text", text: attributed(name, "").trimEnd() }];
  return [
    ...speaker,
    ...parts.map((part): JsonObject => {
      if (part.type === "text") return { type: "input_text", text: part.text };
      const media = resolveMedia(PROVIDER, part);
      if (part.type === "image") return { type: "input_image", detail: "auto", image_url: mediaUrl(media) };
      const kind = part.mediaType ?? ("mediaType" in media ? media.mediaType : "");
      if (/^(?:audio|video)\//i.test(kind)) throw unsupported(PROVIDER, `media of the type "${kind}"`);
      return "url" in media
        ? { type: "input_file", file_url: media.url }
        : { type: "input_file", filename: part.name ?? "file", file_data: mediaUrl(media) };
    }),
  ];
}
