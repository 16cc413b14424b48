/**
 * Attachments: images and files that were uploaded to a conversation, and their addresses in content. Pure.
 *
 * ATTACH-1  An attachment belongs to one conversation. No other conversation can name it.
 * ATTACH-2  Content names media by `attachment:` and an id or by an `https:` address, or contains them as a `data:` URL.
 *           Every other address is refused, and also one with a user or a password: providers get it, and it is stored.
 */
/** Default maximum size of an attachment, in bytes. */
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

export interface AttachmentInfo {
  id: string;
  /** `type/subtype` in lower case, without parameters. */
  mediaType: string;
  /** Bytes. */
  size: number;
  /** The uploader's name for it. */
  name?: string;
}

/** Returns the media type of a `Content-Type`, without parameters; `undefined` for an invalid one. */
export function mediaTypeOf(contentType: string | null): string | undefined {
  const mediaType = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  return MEDIA_TYPE.test(mediaType) ? mediaType : undefined;
}

/** Returns the id in an attachment's address; `undefined` for other addresses. */
export function attachmentIdOf(url: string): string | undefined {
  if (!url.startsWith(ATTACHMENT_SCHEME)) return undefined;
  const id = url.slice(ATTACHMENT_SCHEME.length);
  return isAttachmentId(id) ? id : undefined;
}

/** Returns the media in a `data:` URL in base64; `undefined` for other addresses. */
export function readDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  const { mediaType, base64 } = DATA_URL.exec(url)?.groups ?? {};
  if (mediaType === undefined || base64 === undefined || base64.length % 4 !== 0) return undefined;
  const known = mediaTypeOf(mediaType);
  return known === undefined ? undefined : { mediaType: known, base64 };
}

/**
 * Returns the defect of an address of media; `undefined` for a valid address (ATTACH-2). Does not check that an attachment
 * exists.
 */
export function addressIssue(url: string): string | undefined {
  if (url.startsWith(ATTACHMENT_SCHEME))
    return attachmentIdOf(url) === undefined
      ? "Is not an attachment URL. Use the `url` that the upload returned."
      : undefined;
  if (url.startsWith("data:"))
    return readDataUrl(url) === undefined ? "Must be a data URL with a media type, in base64." : undefined;
  // Unlike providers, parsers ignore white space and control characters.
  const address = /^https:\/\/[^\s\p{Cc}]+$/iu.test(url) && URL.canParse(url) ? new URL(url) : undefined;
  if (address === undefined) return "Must be the `url` of an attachment, an https address, or a data URL.";
  return address.username + address.password === ""
    ? undefined
    : "Must not contain a user name or a password.";
}
