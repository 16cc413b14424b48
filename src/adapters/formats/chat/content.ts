/** What a user sent, as the content of a Chat Completions message. Pure. */
import type { ContextMessage } from "../../../model/messages.ts";
import type { ProviderId } from "../../../model/profile.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { type ContextMedia, carriesMedia, fileName, mediaUrl, resolveMedia } from "../common/media-source.ts";
import { unsupported } from "../common/native.ts";

/** How a provider takes media in a chat message. */
export interface ChatMedia {
  image(part: ContextMedia): JsonObject;
  file(part: ContextMedia): JsonObject;
}

/** The content of a message: its text, or a list of parts where there are media. */
export function chatContent(provider: ProviderId, message: ContextMessage, media: ChatMedia): Json {
  if (!carriesMedia(provider, message)) return message.content;
  return (message.parts ?? []).map((part): JsonObject => {
    return part.type === "text" ? { type: "text", text: part.text } : media[part.type](part);
  });
}

/** Media as OpenAI's Chat Completions take them: sound as `input_audio`, other files as `file`, both by value only. */
export const openaiMedia: ChatMedia = {
  image: (part) => ({ type: "image_url", image_url: { url: mediaUrl(resolveMedia("openai", part)) } }),
  file(part) {
    const media = resolveMedia("openai", part);
    if ("url" in media) throw unsupported("openai", "a file by its address, only by value");
    const [kind, subtype = ""] = media.mediaType.toLowerCase().split(";")[0]?.split("/") ?? [];
    if (kind === "video") throw unsupported("openai", "video");
    if (kind !== "audio") {
      return {
        type: "file",
        file: { filename: fileName(part, media.mediaType), file_data: mediaUrl(media) },
      };
    }
    const format = AUDIO_FORMATS.get(subtype);
    if (format !== undefined) return { type: "input_audio", input_audio: { data: media.base64, format } };
    throw unsupported("openai", `sound of the type "${media.mediaType}", only WAV and MP3`);
  },
};

const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map([
  ["wav", "wav"],
  ["x-wav", "wav"],
  ["wave", "wav"],
  ["mpeg", "mp3"],
  ["mp3", "mp3"],
]);
