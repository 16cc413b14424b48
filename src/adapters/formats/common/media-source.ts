/** Where the media of a message come from, in the two ways that providers take them: by address or by value. Pure. */
import type { ContextMessage, ContextPart } from "../../../model/messages.ts";
import type { ProviderId } from "../../../model/profile.ts";
import { unsupported } from "./native.ts";

export type ContextMedia = Exclude<ContextPart, { type: "text" }>;

/** An address that the provider itself reads, or the media in base64. */
export type ResolvedMedia = { url: string } | { mediaType: string; base64: string };

const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)$/is;

/** Throws `UNSUPPORTED` for media that no provider could read, such as an attachment that nobody has resolved. */
export function resolveMedia(provider: ProviderId, { type, source, mediaType }: ContextMedia): ResolvedMedia {
  if ("base64" in source) {
    if (mediaType === undefined)
      throw unsupported(provider, `${articled(type)} by value without a media type`);
    return { mediaType, base64: source.base64 };
  }
  if (/^https?:\/\//i.test(source.url)) return { url: source.url };
  const [, ownType, base64] = DATA_URL.exec(source.url) ?? [];
  if (base64 !== undefined) {
    const known = mediaType ?? (ownType || undefined);
    if (known !== undefined) return { mediaType: known, base64 };
    throw unsupported(provider, `${articled(type)} by value without a media type`);
  }
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(source.url)?.[0].toLowerCase() ?? "no scheme";
  throw unsupported(provider, `${articled(type)} whose address begins with "${scheme}"`);
}

/** Media by value as a `data:` URL; an address as it is. */
export function mediaUrl(media: ResolvedMedia): string {
  return "url" in media ? media.url : `data:${media.mediaType};base64,${media.base64}`;
}

/** The name of a file given by value; providers that want one go by its ending. */
export function fileName({ name }: ContextMedia, mediaType: string): string {
  return name ?? (mediaType === "application/pdf" ? "file.pdf" : "file");
}

/** Whether a message has more than text; throws `UNSUPPORTED` where its speaker can send text only. */
export function carriesMedia(provider: ProviderId, { role, parts = [] }: ContextMessage): boolean {
  if (parts.every(({ type }) => type === "text")) return false;
  if (role !== "user") throw unsupported(provider, `images or files in a message of the role "${role}"`);
  return true;
}

function articled(type: ContextMedia["type"]): string {
  return type === "image" ? "an image" : "a file";
}
