/** Images and documents as blocks of the Messages API. Pure. */
import type { ContextPart } from "../../../model/messages.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { filled } from "../common/json.ts";
import { isText, plainType, type ResolvedMedia, requireHttps, resolveMedia } from "../common/media.ts";
import { unsupported } from "../common/request.ts";

const IMAGES = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
const PDF = "application/pdf";

/** Builds a text, image or document block; throws `UNSUPPORTED` for media that the API does not read. */
export function toBlock(part: ContextPart): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  const media = resolveMedia("anthropic", part);
  const mediaType = plainType(media.mediaType);
  const isImage = mediaType === undefined ? part.type === "image" : mediaType.startsWith("image/");
  if (!isImage) {
    return { type: "document", source: documentSource(media, mediaType), ...filled({ title: part.name }) };
  }
  if (mediaType !== undefined && !IMAGES.has(mediaType)) {
    throw unsupported("anthropic", `an image of the type "${mediaType}", only JPEG, PNG, GIF and WebP`);
  }
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
