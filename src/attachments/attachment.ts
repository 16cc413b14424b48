/**
 * Attachments: images and files that were uploaded to a conversation, and how content names them. Pure.
 *
 * ATTACH-1  An attachment belongs to one conversation: no other can name it.
 * ATTACH-2  Content names media by `attachment:` and an id, by an `https:` address, or holds them as a `data:` URL. Every
 *           other address is refused, and one that holds a user or a password: it is told to a provider, and kept.
 */
/** The most bytes that an attachment may have where the application says nothing. */
export const MAX_ATTACHMENT_BYTES = 8 * 1024 * 1024;

/** The prefix of an address that names an attachment. */
export const ATTACHMENT_SCHEME = "attachment:";

const ATTACHMENT_ID = /^att_[0-9A-HJKMNP-TV-Z]{26}$/;
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/;
const DATA_URL = /^data:(?<mediaType>[^;,]+);base64,(?<base64>[A-Za-z0-9+/]*={0,2})$/;

/** `att_` and a ULID. */
export function isAttachmentId(value: string): boolean {
  return ATTACHMENT_ID.test(value);
}

/** What is known of an attachment beside its bytes. */
export interface AttachmentInfo {
  id: string;
  /** `type/subtype` in lower case, without parameters. */
  mediaType: string;
  /** Bytes. */
  size: number;
  /** As the uploader called it. */
  name?: string;
}

/** The media type of a `Content-Type`, without parameters; `undefined` for what is none. */
export function mediaTypeOf(contentType: string | null): string | undefined {
  const mediaType = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  return MEDIA_TYPE.test(mediaType) ? mediaType : undefined;
}

/** The id that an address names; `undefined` for one of another kind. */
export function attachmentIdOf(url: string): string | undefined {
  if (!url.startsWith(ATTACHMENT_SCHEME)) return undefined;
  const id = url.slice(ATTACHMENT_SCHEME.length);
  return isAttachmentId(id) ? id : undefined;
}

/** The media that a `data:` URL holds; `undefined` for what is none in base64. */
export function readDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  const { mediaType, base64 } = DATA_URL.exec(url)?.groups ?? {};
  if (mediaType === undefined || base64 === undefined || base64.length % 4 !== 0) return undefined;
  const known = mediaTypeOf(mediaType);
  return known === undefined ? undefined : { mediaType: known, base64 };
}

/** Why an address cannot name media; `undefined` where it can (ATTACH-2). Whether an attachment exists is not asked. */
export function addressIssue(url: string): string | undefined {
  if (url.startsWith(ATTACHMENT_SCHEME)) {
    return attachmentIdOf(url) === undefined
      ? "Names no attachment: use the `url` that the upload gave."
      : undefined;
  }
  if (url.startsWith("data:")) {
    return readDataUrl(url) === undefined ? "Must be a data URL with a media type, in base64." : undefined;
  }
  // Parsers pass over white space and what they cannot show; whoever is told the address may not.
  const address = /^https:\/\/[^\s\p{Cc}]+$/iu.test(url) && URL.canParse(url) ? new URL(url) : undefined;
  if (address === undefined) return "Must be the `url` of an attachment, an https address, or a data URL.";
  return address.username + address.password === "" ? undefined : "Must hold no user and no password.";
}
