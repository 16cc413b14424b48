/** Context messages, images and documents as turns of the Messages API. Pure. */
import type { ContextMessage, ContextPart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { filled, jsonOf, objects } from "../common/json.ts";
import {
  carriesMedia,
  isText,
  plainType,
  type ResolvedMedia,
  requireHttps,
  resolveMedia,
} from "../common/media.ts";
import { type CallForm, ID_LENGTH, plainName, type SentCalls } from "../common/names.ts";
import { nativeContent, nativeParts } from "../common/native.ts";
import { unsupported } from "../common/request.ts";
import { type SpeakerTurn, spokenParts } from "../common/turns.ts";

export const ANTHROPIC_NAME_LENGTH = 128;

/** Result of a failed call without content, because the API requires content. */
const FAILED = "The tool failed.";

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

const IMAGES = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
const PDF = "application/pdf";

/** Builds a text, image or document block; throws `UNSUPPORTED` for media that the API does not read. */
function toBlock(part: ContextPart): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  const media = resolveMedia("anthropic", part);
  const mediaType = plainType(media.mediaType);
  const isImage = mediaType === undefined ? part.type === "image" : mediaType.startsWith("image/");
  if (!isImage)
    return { type: "document", source: documentSource(media, mediaType), ...filled({ title: part.name }) };
  if (mediaType !== undefined && !IMAGES.has(mediaType))
    throw unsupported("anthropic", `an image of the type "${mediaType}", only JPEG, PNG, GIF and WebP`);
  return { type: "image", source: "url" in media ? byUrl(media.url) : byValue(media.base64, mediaType) };
}

/** PDF goes by address or by value; text by value goes as text. */
function documentSource(media: ResolvedMedia, mediaType: string | undefined): JsonObject {
  if ("url" in media) {
    if (mediaType === undefined || mediaType === PDF) return byUrl(media.url);
    throw unsupported("anthropic", `a file of the type "${mediaType}" by its address, only PDF`);
  }
  if (mediaType === PDF) return byValue(media.base64, PDF);
  const text = isText(mediaType) ? decoded(media.base64) : undefined;
  if (text !== undefined) return { type: "text", media_type: "text/plain", data: text };
  throw unsupported("anthropic", `a file of the type "${mediaType}", only PDF and text in UTF-8`);
}

function byUrl(url: string): JsonObject {
  return { type: "url", url: requireHttps("anthropic", url) };
}

function byValue(base64: string, mediaType = ""): JsonObject {
  return { type: "base64", media_type: mediaType, data: base64 };
}

/** Decodes UTF-8; `undefined` for other bytes. */
function decoded(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return undefined;
  }
}
