/** Converts a draft to content. Files are uploaded to the conversation first. */
import type { Content, MediaPart } from "../../src/client/index.ts";
import { defined } from "../../src/shared/defined.ts";
import { client } from "./client.ts";

/** An unsent message. */
export interface Draft {
  text: string;
  files: readonly File[];
}

/** Uploads the files of a draft and returns its content. Rejects if an upload fails; then do not send the message. */
export async function contentOf(conversationId: string, { text, files }: Draft): Promise<Content> {
  if (files.length === 0) return text;
  const media = await Promise.all(
    files.map(async (file): Promise<MediaPart> => {
      const { url, mediaType, name } = await client.attachments.upload(conversationId, file);
      const type = mediaType.startsWith("image/") ? "image" : "file";
      return { type, url, mediaType, ...defined({ name }) };
    }),
  );
  return text === "" ? media : [{ type: "text", text }, ...media];
}
