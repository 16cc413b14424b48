/** Context messages as the prompt of an AI SDK language model. Pure. */
import type { ContextMessage, ContextPart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { jsonOf, objects } from "../common/json.ts";
import { carriesMedia, resolveMedia } from "../common/media.ts";
import { plainName, type SentCall, SentCalls } from "../common/names.ts";
import { attributedParts, ownContent, ownParts } from "../common/native.ts";
import { unsupported } from "../common/request.ts";
import { attributed, spokenParts } from "../common/turns.ts";

const PROVIDER = "ai-sdk";
/** Leaves room for a number behind the id: the strictest provider behind the SDK accepts ids of 40 characters. */
const ID_LENGTH = 34;

/** Builds the messages of a prompt; empty ones are left out. `earlier` are the messages that were sent before. */
export function toPrompt(
  messages: readonly ContextMessage[],
  profile: ModelProfile,
  earlier: readonly Json[] = [],
): JsonObject[] {
  const calls = new SentCalls(callsIn(earlier), plainName, ID_LENGTH);
  return messages.flatMap((message): JsonObject[] => {
    carriesMedia(PROVIDER, message);
    const { role, name, content } = message;
    if (role === "system") return content.trim() === "" ? [] : [{ role, content: attributed(name, content) }];
    const parts = role === "tool" ? [toResult(message, calls)] : toContent(message, profile, calls);
    return parts.length === 0 ? [] : [{ role, content: parts }];
  });
}

function callsIn(messages: readonly Json[]): SentCall[] {
  const parts = objects(messages).flatMap(({ content }) => objects(content));
  return parts.flatMap(({ type, toolCallId, toolName }) =>
    type === "tool-call" ? [{ id: String(toolCallId), name: String(toolName) }] : [],
  );
}

function toResult(message: ContextMessage, calls: SentCalls): JsonObject {
  const { id, name } = calls.answeredBy(message);
  const type = message.metadata?.isSuccess === false ? "error-text" : "text";
  const output = { type, value: message.content };
  return { type: "tool-result", toolCallId: id, toolName: name, output };
}

function toContent(message: ContextMessage, profile: ModelProfile, calls: SentCalls): JsonObject[] {
  const toCall = (call: ToolCall): JsonObject => {
    const { id, name } = calls.add(call);
    return { type: "tool-call", toolCallId: id, toolName: name, input: jsonOf(call.arguments) };
  };
  // A blank text goes back only with its metadata (AISDK-2).
  const toText = (text: string, extra: JsonObject) =>
    text.trim() === "" && Object.keys(extra).length === 0 ? [] : [{ type: "text", text, ...extra }];
  const own = ownParts(message, profile);
  return own === undefined
    ? [...spokenParts(message).map(toPart), ...(message.toolCalls ?? []).map(toCall)]
    : ownContent(attributedParts(message.name, own), toCall, toText);
}

function toPart(part: ContextPart): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  const media = resolveMedia(PROVIDER, part);
  const mediaType = media.mediaType ?? (part.type === "image" ? "image" : undefined);
  if (mediaType === undefined) throw unsupported(PROVIDER, "a file by its address without a media type");
  const data = "url" in media ? { type: "url", url: media.url } : { type: "data", data: media.base64 };
  return { type: "file", ...defined({ filename: part.name }), data, mediaType };
}
