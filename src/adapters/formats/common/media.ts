/** Media of a message, in the two forms that providers accept: by address or by value. Pure. */
import type { ContextMessage, ContextPart } from "../../../model/messages.ts";
import type { ProviderId } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { unsupported } from "./request.ts";

export type ContextMedia = Exclude<ContextPart, { type: "text" }>;

/** An address that the provider reads itself, or the media in base64. */
export type ResolvedMedia = { url: string; mediaType?: string } | { base64: string; mediaType: string };

const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)$/is;

/** Resolves the source of media. Throws `UNSUPPORTED` for a source that no provider reads, such as `attachment:1`. */
export function resolveMedia(provider: ProviderId, media: ContextMedia): ResolvedMedia {
  const { type, source, mediaType } = media;
  const articled = type === "image" ? "an image" : "a file";
  const byValue = (base64: string, known: string | undefined): ResolvedMedia => {
    if (known) return { base64, mediaType: known };
    throw unsupported(provider, `${articled} by value without a media type`);
  };
  if ("base64" in source) return byValue(source.base64, mediaType);
  if (/^https?:\/\//i.test(source.url)) return { url: source.url, ...defined({ mediaType }) };
  const [, ownType, base64] = DATA_URL.exec(source.url) ?? [];
  if (base64 !== undefined) return byValue(base64, mediaType ?? ownType);
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(source.url)?.[0].toLowerCase() ?? "no scheme";
  throw unsupported(provider, `${articled} with an address that begins with "${scheme}"`);
}

/** Returns an HTTPS address; throws `UNSUPPORTED` for any other. */
export function requireHttps(provider: ProviderId, url: string): string {
  if (/^https:/i.test(url)) return url;
  throw unsupported(provider, "media by an address that is not HTTPS");
}

/** Returns media by value as a `data:` URL, and media by address as the address. */
export function mediaUrl(media: ResolvedMedia): string {
  return "url" in media ? media.url : `data:${media.mediaType};base64,${media.base64}`;
}

/** Returns the name of a file given by value. Providers that require a name read the type from its extension. */
export function fileName({ name }: ContextMedia, mediaType: string): string {
  return name ?? (mediaType === "application/pdf" ? "file.pdf" : "file");
}

/** Reports whether a message has media. Throws `UNSUPPORTED` for media in a message that is not a user's. */
export function carriesMedia(provider: ProviderId, { role, parts = [] }: ContextMessage): boolean {
  if (parts.every(({ type }) => type === "text")) return false;
  if (role !== "user") throw unsupported(provider, `images or files in a message of the role "${role}"`);
  return true;
}

/** Returns a media type in lower case, by its registered name, without parameters. */
export function plainType(mediaType: string | undefined): string | undefined {
  const plain = mediaType?.split(";")[0]?.trim().toLowerCase();
  return plain === "image/jpg" ? "image/jpeg" : plain;
}

/** Reports whether a format may send media of this type as text: it then needs the data itself. */
export function isText(mediaType: string | undefined): boolean {
  return mediaType !== undefined && (mediaType.startsWith("text/") || mediaType === "application/json");
}

/** Types of images by extension, if the extension differs from the subtype. */
const IMAGE_ENDINGS: ReadonlyMap<string, string> = new Map([
  ["jpg", "jpeg"],
  ["jfif", "jpeg"],
  ["svg", "svg+xml"],
  ["tif", "tiff"],
]);
const OWN_ENDINGS = new Set(["png", "jpeg", "gif", "webp", "avif", "heic", "heif", "bmp", "tiff"]);

/** Returns the media type of an image by the extension of its address, or `image/jpeg`. */
export function imageType(url: string): string {
  const [, ending = ""] = /\.([a-z]+)$/i.exec(new URL(url).pathname) ?? [];
  const name = ending.toLowerCase();
  return `image/${IMAGE_ENDINGS.get(name) ?? (OWN_ENDINGS.has(name) ? name : "jpeg")}`;
}
