/** Media as OpenAI's Chat Completions take them: sound as `input_audio`, other files as `file`, both by value only. Pure. */
import type { ChatMedia } from "../chat/messages.ts";
import { fileName, mediaUrl, plainType, resolveMedia } from "../common/media.ts";
import { unsupported } from "../common/request.ts";

/** Formats of sound, by media type. */
const SOUND: ReadonlyMap<string, string> = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/wave", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"],
]);

export const openaiMedia: ChatMedia = {
  image: (part) => ({ type: "image_url", image_url: { url: mediaUrl(resolveMedia("openai", part)) } }),
  file(part) {
    const media = resolveMedia("openai", part);
    if ("url" in media) throw unsupported("openai", "a file by its address, only by value");
    const type = plainType(media.mediaType) ?? "";
    if (type.startsWith("video/")) throw unsupported("openai", "video");
    if (!type.startsWith("audio/")) {
      const file = { filename: fileName(part, media.mediaType), file_data: mediaUrl(media) };
      return { type: "file", file };
    }
    const format = SOUND.get(type);
    if (format !== undefined) return { type: "input_audio", input_audio: { data: media.base64, format } };
    throw unsupported("openai", `audio of the type "${media.mediaType}", only WAV and MP3`);
  },
};
