/** Images and documents as blocks of the Messages API. Pure. */
import type { ContextPart } from "../../../model/messages.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { type ContextMedia, type ResolvedMedia, resolveMedia } from "../common/media-source.ts";
import { plainType } from "../common/media-type.ts";
import { unsupported } from "../common/native.ts";

const IMAGES = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
const PDF = "application/pdf";

/** A text, image or document block; throws `UNSUPPORTED` for what the API does not read. */
export function toBlock(part: ContextPart): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  const media = resolveMedia("anthropic", part);
  const mediaType = plainType("url" in media ? part.mediaType : media.mediaType);
  const isImage = mediaType === undefined ? part.type === "image" : mediaType.startsWith("image/");
  return isImage ? image(media, mediaType) : document(part, media, mediaType);
}

function image(media: ResolvedMedia, mediaType: string | undefined): JsonObject {
  if (mediaType !== undefined && !IMAGES.has(mediaType)) {
    throw unsupported("anthropic", `an image of the type "${mediaType}", only JPEG, PNG, GIF and WebP`);
  }
  const source =
    "url" in media ? byUrl(media.url) : { type: "base64", media_type: mediaType ?? "", data: media.base64 };
  return { type: "image", source };
}

function document(part: ContextMedia, media: ResolvedMedia, mediaType: string | undefined): JsonObject {
  return { type: "document", source: sourceOf(media, mediaType), ...(part.name ? { title: part.name } : {}) };
}

/** PDF by address or by value; text by value, where it is sent as what it says. */
function sourceOf(media: ResolvedMedia, mediaType: string | undefined): JsonObject {
  if ("url" in media) {
    if (mediaType === undefined || mediaType === PDF) return byUrl(media.url);
    throw unsupported("anthropic", `a file of the type "${mediaType}" by its address, only PDF`);
  }
  if (mediaType === PDF) return { type: "base64", media_type: PDF, data: media.base64 };
  const isText = mediaType?.startsWith("text/") || mediaType === "application/json";
  const text = isText ? textOf(media.base64) : undefined;
  if (text !== undefined) return { type: "text", media_type: "text/plain", data: text };
  throw unsupported("anthropic", `a file of the type "${mediaType}", only PDF and text in UTF-8`);
}

function byUrl(url: string): JsonObject {
  if (/^https:/i.test(url)) return { type: "url", url };
  throw unsupported("anthropic", "media by an address that is not HTTPS");
}

function textOf(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return undefined;
  }
}
