/**
 * The media in users' messages. They are checked when a turn begins, and fetched for each model call.
 *
 * MEDIA-1  A turn begins only if every named attachment belongs to its conversation. An image part must name an image.
 * MEDIA-2  A model gets attachments by value. Beyond `MAX_MEDIA_BYTES`, a note replaces the oldest attachments. A note also replaces
 *          deleted attachments. If the gateway streams media, it reads attachments other than texts while it sends the request,
 *          and the body has placeholders.
 * MEDIA-3  If attachments cannot be reached for now, the sender gets `UNAVAILABLE`, and the attempt of a model call fails as if
 *          its provider had failed. They do not count as deleted.
 * MEDIA-4  If an attachment was deleted or replaced after its request was built, or cannot be read, the attempt ends with the
 *          retriable error `UNAVAILABLE`. The outcome of the provider does not matter. The next attempt looks the attachment up again.
 */
import { isText } from "../../../adapters/formats/common/media.ts";
import { PIECE_BYTES } from "../../../adapters/gateway/request-body.ts";
import {
  type AttachmentInfo,
  addressIssue,
  attachmentIdOf,
  readDataUrl,
} from "../../../attachments/attachment.ts";
import type { AttachmentStore, StoredInfo } from "../../../attachments/attachment-store.ts";
import type { DeferredMedia } from "../../../model/gateway.ts";
import type { ContextMessage, ContextPart } from "../../../model/messages.ts";
import type { Ids } from "../../../ports/ids.ts";
import type { ByteRange } from "../../../ports/object-store.ts";
import { toBase64 } from "../../../shared/base64.ts";
import { type Content, type MediaPart, plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { type InputIssue, invalid, unavailable } from "../../../shared/errors.ts";
import { issuesText } from "../../../shared/validation.ts";
import type { ConversationMedia } from "../context.ts";

/** Restricts a store to one conversation; returns `undefined` without a store. */
export function conversationMedia(
  store: AttachmentStore | null,
  owner: () => { tenant: string; conversationId: string },
): { media?: ConversationMedia } {
  if (store === null) return {};
  return {
    media: {
      head: (id) => store.head(owner(), id),
      read: (info, range) => store.read(owner(), info, range),
    },
  };
}

/** Returns media that look up each attachment once, for one model call. Attachments never change. */
export function lookedUpOnce(media: ConversationMedia): ConversationMedia {
  const heads = new Map<string, Promise<StoredInfo | null>>();
  return {
    head(id) {
      const head = heads.get(id) ?? media.head(id);
      heads.set(id, head);
      return head;
    },
    read: (info, range) => media.read(info, range),
  };
}

/** Maximum bytes of media in one request. */
export const MAX_MEDIA_BYTES = 16 * 1024 * 1024;

/** Throws `INVALID_INPUT` with the unusable parts, and `UNAVAILABLE` if the attachments cannot be looked up. */
export async function checkMedia(content: Content, media: ConversationMedia | undefined): Promise<void> {
  if (typeof content === "string") return;
  const issues = await Promise.all(
    content.map(async (part, index): Promise<InputIssue[]> => {
      if (part.type === "text") return [];
      const message = addressIssue(part.url) ?? (await attachmentIssue(part, media));
      return message === undefined ? [] : [{ path: `/content/${index}/url`, message }];
    }),
  );
  const errors = issues.flat();
  if (errors.length === 0) return;
  const message = `The content names media that cannot be used: ${issuesText(errors)}`;
  throw invalid(message, { errors });
}

/**
 * As `checkMedia`, but without errors if the message's turn has begun, before or during the check. The attachments existed at its begin,
 * and may be deleted by now.
 */
export async function checkNewMedia(
  content: Content,
  media: ConversationMedia | undefined,
  hasBegun: () => boolean,
): Promise<void> {
  if (hasBegun()) return;
  await checkMedia(content, media).catch((error: unknown) => {
    if (!hasBegun()) throw error;
  });
}

/** Reports whether content has parts that `checkMedia` must look up. */
export function hasMedia(content: Content): boolean {
  return typeof content !== "string" && content.some((part) => part.type !== "text");
}

async function attachmentIssue(
  { type, url }: MediaPart,
  media: ConversationMedia | undefined,
): Promise<string | undefined> {
  const id = attachmentIdOf(url);
  if (id === undefined) return undefined;
  const info = await reached(media, (store) => store.head(id));
  if (info === null) return `This conversation has no attachment "${id}". Upload it here first.`;
  if (type !== "image" || info.mediaType.startsWith("image/")) return undefined;
  return `Is ${info.mediaType}, not an image: send it as a file.`;
}

/**
 * Returns the messages with their media by value, or with placeholders for media that `reads` defers. Throws `UNAVAILABLE` if media cannot
 * be reached for now.
 */
export async function withMedia(
  messages: readonly ContextMessage[],
  media: ConversationMedia | undefined,
  reads?: MediaReads,
): Promise<ContextMessage[]> {
  if (messages.every(({ parts }) => parts === undefined)) return [...messages];
  let left = MAX_MEDIA_BYTES;
  const resolved: ContextMessage[] = [];
  for (const message of messages.toReversed()) {
    const parts: ContextPart[] = [];
    for (const part of (message.parts ?? []).toReversed()) {
      const given = await resolve(part, media, left, reads);
      left -= given.bytes;
      parts.unshift(given.part);
    }
    resolved.unshift(message.parts === undefined ? message : { ...message, content: textIn(parts), parts });
  }
  return resolved;
}

/** Returns the maximum bytes of media that a request holds at a time, at most `MAX_MEDIA_BYTES`. */
export async function mediaBytes(
  messages: readonly ContextMessage[],
  media: ConversationMedia | undefined,
  isStreamed: boolean,
): Promise<number> {
  const parts = messages.flatMap((message) => message.parts ?? []);
  const sizes = await Promise.all(
    parts.map(async (part) => {
      if (part.type === "text" || !("url" in part.source)) return { whole: 0, deferred: 0 };
      const { url } = part.source;
      const id = attachmentIdOf(url);
      if (id === undefined) return { whole: url.startsWith("data:") ? url.length : 0, deferred: 0 };
      const info = await reached(media, (store) => store.head(id));
      const size = info?.size ?? 0;
      return isStreamed && info !== null && isDeferred(info)
        ? { whole: 0, deferred: size }
        : { whole: size, deferred: 0 };
    }),
  );
  const whole = sizes.reduce((sum, size) => sum + size.whole, 0);
  const deferred = sizes.reduce((sum, size) => sum + size.deferred, 0);
  return Math.min(MAX_MEDIA_BYTES, whole + Math.min(PIECE_BYTES, deferred));
}

async function resolve(
  part: ContextPart,
  media: ConversationMedia | undefined,
  maxBytes: number,
  reads: MediaReads | undefined,
): Promise<{ part: ContextPart; bytes: number }> {
  if (part.type === "text" || !("url" in part.source)) return { part, bytes: byteLength(part) };
  const { type, source } = part;
  const replaced = (why: string) => {
    const name = part.name === undefined ? "" : ` "${part.name}"`;
    return { part: { type: "text" as const, text: `[The ${type}${name} ${why}.]` }, bytes: 0 };
  };
  const tooLarge = "is not sent again, to save room";
  const inline = readDataUrl(source.url);
  if (inline !== undefined) {
    const given = { ...part, mediaType: inline.mediaType, source: { base64: inline.base64 } };
    const bytes = byteLength(given);
    return bytes <= maxBytes ? { part: given, bytes } : replaced(tooLarge);
  }
  const id = attachmentIdOf(source.url);
  if (id === undefined) return { part, bytes: 0 };
  const info = await reached(media, (store) => store.head(id));
  if (info === null) return replaced(DELETED);
  if (info.size > maxBytes) return replaced(tooLarge);
  const base64 = reads !== undefined && isDeferred(info) ? reads.defer(info) : await wholly(info, media);
  if (base64 === null) return replaced(DELETED);
  const { mediaType, size: bytes } = info;
  const name = part.name ?? info.name;
  return { part: { type, mediaType, ...defined({ name }), source: { base64 } }, bytes };
}

const DELETED = "is no longer there";

/** Reports whether an attachment is read only while its request is sent. Formats need texts before that. */
function isDeferred({ mediaType }: AttachmentInfo): boolean {
  return !isText(mediaType);
}

async function wholly(info: StoredInfo, media: ConversationMedia | undefined): Promise<string | null> {
  const bytes = await reached(media, (store) => store.read(info));
  return bytes && toBase64(bytes);
}

/** The attachments of one request that are read while it is sent. */
export class MediaReads {
  readonly deferred = new Map<string, DeferredMedia>();
  readonly #broken = new AbortController();
  #sent = 0;

  /** `onSent` is called when all media have been sent. */
  constructor(
    private readonly media: ConversationMedia | undefined,
    private readonly ids: Ids,
    private readonly onSent: () => void,
  ) {}

  /** Aborts with the retriable error `UNAVAILABLE` when an attachment cannot be read. */
  get signal(): AbortSignal {
    return this.#broken.signal;
  }

  defer(info: StoredInfo): string {
    const placeholder = `media_${this.ids.ulid()}`;
    const read = (offset: number, length: number) =>
      this.#read(info, { offset, length }).catch((error: unknown) => {
        this.#broken.abort(error);
        throw error;
      });
    const sent = () => {
      this.#sent += 1;
      if (this.#sent === this.deferred.size) this.onSent();
    };
    this.deferred.set(placeholder, { size: info.size, read, sent });
    return placeholder;
  }

  async #read(info: StoredInfo, range: ByteRange): Promise<Uint8Array> {
    const bytes = await reached(this.media, (store) => store.read(info, range));
    if (bytes !== null) return bytes;
    const message = "An attachment was deleted or replaced while it was sent. Try again.";
    throw unavailable(message, { retriable: true });
  }
}

/** Returns the text that an adapter sends for a message with only replaced media. */
function textIn(parts: readonly ContextPart[]): string {
  return plainText(parts.filter((part) => part.type === "text"));
}

function byteLength(part: ContextPart): number {
  if (part.type === "text" || !("base64" in part.source)) return 0;
  return Math.ceil((part.source.base64.length * 3) / 4);
}

/** Reads from the attachments. Throws `UNAVAILABLE` if they fail (MEDIA-3) or are not configured. */
async function reached<Answer>(
  media: ConversationMedia | undefined,
  read: (media: ConversationMedia) => Promise<Answer>,
): Promise<Answer> {
  if (media === undefined) {
    const message = "Attachments need the R2 binding `BUCKET`; add it to the configuration.";
    throw unavailable(message);
  }
  try {
    return await read(media);
  } catch (cause) {
    console.error(cause);
    const message = "The attachments could not be looked up. Try again.";
    throw unavailable(message, { retriable: true, cause });
  }
}

export function withoutMedia(messages: readonly ContextMessage[]): ContextMessage[] {
  return messages.map((message) => {
    if (message.parts === undefined) return message;
    const parts = message.parts.map((part): ContextPart => {
      if (part.type === "text") return part;
      return { type: "text", text: `[${[part.type, part.name].filter(Boolean).join(" ")}]` };
    });
    return { ...message, content: textIn(parts), parts };
  });
}
