/** From what was written and chosen to what is sent: files are uploaded to the conversation first. */
import type { Content, MediaPart } from "../../src/client/index.ts";
import { client } from "./client.ts";

/** A message as its writer left it. */
export interface Draft {
  text: string;
  files: readonly File[];
}

/** Throws where an upload is refused; then nothing should be sent. */
export async function contentOf(conversationId: string, { text, files }: Draft): Promise<Content> {
  if (files.length === 0) return text;
  const media = await Promise.all(
    files.map(async (file): Promise<MediaPart> => {
      const { url, mediaType, name } = await client.attachments.upload(conversationId, file);
      const type = mediaType.startsWith("image/") ? "image" : "file";
      return { type, url, mediaType, ...(name === undefined ? {} : { name }) };
    }),
  );
  return text === "" ? media : [{ type: "text", text }, ...media];
}
