/** A conversation as the prompt of an AI SDK language model. Pure. */
import type { ContextMessage, ContextPart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { CallIds } from "../common/call-ids.ts";
import { carriesMedia, resolveMedia } from "../common/media-source.ts";
import { NAME_LENGTH, plainName } from "../common/names.ts";
import { ownParts, unsupported } from "../common/native.ts";
import { jsonOf } from "../common/request.ts";
import { attributed, attributedParts } from "../common/speaker.ts";
import { spokenParts } from "../common/turns.ts";

const PROVIDER = "ai-sdk";
/** With a number behind it, an id is still as long as the strictest provider takes. */
const LONGEST_ID = 34;

/** Messages that follow the messages `earlier`; one that says nothing is left out, as the AI SDK itself does. */
export function toPrompt(
  messages: readonly ContextMessage[],
  profile: ModelProfile,
  earlier: readonly Json[] = [],
): JsonObject[] {
  const names = new Map(earlier.flatMap(callsOf).map((call) => [call.toolCallId, call.toolName]));
  const ids = new CallIds(names.keys(), LONGEST_ID);
  const toCall = ({ id, name, arguments: input }: ToolCall): JsonObject => {
    const call = { toolCallId: ids.ofCall(id), toolName: plainName(name, NAME_LENGTH) };
    names.set(call.toolCallId, call.toolName);
    return { type: "tool-call", ...call, input: jsonOf(input) };
  };
  const toResult = ({ toolCallId = "", name = "", content, metadata }: ContextMessage): JsonObject => {
    const id = ids.ofResult(toolCallId);
    const type = metadata?.isSuccess === false ? "error-text" : "text";
    const toolName = names.get(id) ?? plainName(name, NAME_LENGTH);
    return { type: "tool-result", toolCallId: id, toolName, output: { type, value: content } };
  };
  return messages.flatMap((message): JsonObject[] => {
    carriesMedia(PROVIDER, message);
    const { role, name, content } = message;
    if (role === "system") return content.trim() === "" ? [] : [{ role, content: attributed(name, content) }];
    const parts =
      role === "tool"
        ? [toResult(message)]
        : (ownContent(message, profile, toCall) ?? [
            ...spokenParts(message).map(toPart),
            ...(message.toolCalls ?? []).map(toCall),
          ]);
    return parts.length === 0 ? [] : [{ role, content: parts }];
  });
}

function toPart(part: ContextPart): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  const media = resolveMedia(PROVIDER, part);
  const filename = part.name === undefined ? {} : { filename: part.name };
  if ("base64" in media) {
    const data = { type: "data", data: media.base64 };
    return { type: "file", ...filename, data, mediaType: media.mediaType };
  }
  const mediaType = part.mediaType ?? (part.type === "image" ? "image" : undefined);
  if (mediaType === undefined) throw unsupported(PROVIDER, "a file by its address without a media type");
  return { type: "file", ...filename, data: { type: "url", url: media.url }, mediaType };
}

/** A reply as its own model gave it (AISDK-2). An empty text stands only where something hangs on it. */
function ownContent(
  message: ContextMessage,
  profile: ModelProfile,
  toCall: (call: ToolCall) => JsonObject,
): JsonObject[] | undefined {
  const own = ownParts(message, profile);
  if (own === undefined) return undefined;
  return attributedParts(message.name, own).flatMap((part): JsonObject[] => {
    if (part.type === "block") return [part.value];
    if (part.type === "tool-call") return [{ ...toCall(part.call), ...part.extra }];
    const { text, extra } = part;
    return text.trim() === "" && Object.keys(extra).length === 0 ? [] : [{ type: "text", text, ...extra }];
  });
}

/** The calls of a message that a prompt has already. */
function callsOf(message: Json): { toolCallId: string; toolName: string }[] {
  if (!isJsonObject(message) || !Array.isArray(message.content)) return [];
  return message.content.flatMap((part) => {
    if (!isJsonObject(part) || part.type !== "tool-call") return [];
    const { toolCallId, toolName } = part;
    return typeof toolCallId === "string" && typeof toolName === "string" ? [{ toolCallId, toolName }] : [];
  });
}
