/** Text and media as parts of the Gemini API. Pure. */

import type { ContextPart } from "../../../model/messages.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { type ContextMedia, plainType, requireHttps, resolveMedia } from "../common/media.ts";
import { unsupported } from "../common/request.ts";

const ACCEPTED =
  /^(?:image\/(?:png|jpeg|webp|heic|heif)|(?:audio|video|text)\/.+|application\/(?:pdf|json|rtf))$/;

/** Builds one part, or two for a file with a name: the API has no field for it. Throws `UNSUPPORTED` for other media. */
export function toParts(part: ContextPart): JsonObject[] {
  if (part.type === "text") return [{ text: part.text }];
  const medium = toMedium(part);
  return part.name ? [{ text: `File "${part.name}":` }, medium] : [medium];
}

function toMedium(part: ContextMedia): JsonObject {
  const media = resolveMedia("gemini", part);
  const mimeType = plainType(media.mediaType);
  if (mimeType !== undefined && !ACCEPTED.test(mimeType)) {
    throw unsupported("gemini", `${part.type === "image" ? "an image" : "a file"} of the type "${mimeType}"`);
  }
  return "url" in media
    ? { fileData: { ...defined({ mimeType }), fileUri: requireHttps("gemini", media.url) } }
    : { inlineData: { mimeType: mimeType ?? "", data: media.base64 } };
}
