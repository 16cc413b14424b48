/** Text and media as parts of the Gemini API. Pure. */

import type { ContextPart } from "../../../model/messages.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { resolveMedia } from "../common/media-source.ts";
import { plainType } from "../common/media-type.ts";
import { unsupported } from "../common/native.ts";

const TAKEN =
  /^(?:image\/(?:png|jpeg|webp|heic|heif)|(?:audio|video|text)\/.+|application\/(?:pdf|json|rtf))$/;

/** One part, or two where a file has a name: the API has no field for it. Throws `UNSUPPORTED` for what it does not read. */
export function toParts(part: ContextPart): JsonObject[] {
  if (part.type === "text") return [{ text: part.text }];
  const medium = toMedium(part);
  return part.name ? [{ text: `File "${part.name}":` }, medium] : [medium];
}

function toMedium(part: Exclude<ContextPart, { type: "text" }>): JsonObject {
  const media = resolveMedia("gemini", part);
  const mimeType = plainType("url" in media ? part.mediaType : media.mediaType);
  if (mimeType !== undefined && !TAKEN.test(mimeType)) {
    throw unsupported("gemini", `${part.type === "image" ? "an image" : "a file"} of the type "${mimeType}"`);
  }
  if (!("url" in media)) return { inlineData: { mimeType: mimeType ?? "", data: media.base64 } };
  if (!/^https:/i.test(media.url)) throw unsupported("gemini", "media by an address that is not HTTPS");
  return { fileData: { ...defined({ mimeType }), fileUri: media.url } };
}
