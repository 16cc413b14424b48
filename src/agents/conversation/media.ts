/**
 * The media in what users say: checked when a turn begins, fetched when a model is called.
 *
 * MEDIA-1  A turn begins only if every attachment it names is one of its conversation's, and an image where an image is
 *          said to be.
 * MEDIA-2  A model gets attachments by value. Those beyond `MAX_MEDIA_BYTES`, oldest first, and those that are gone, are
 *          replaced by a text that says so.
 * MEDIA-3  Where they cannot be had for now, the attempt of the call has failed and is made again; to wait for them counts
 *          against its time.
 */
import { addressIssue, attachmentIdOf, readDataUrl } from "../../attachments/attachment.ts";
import type { Attachment, AttachmentStore } from "../../attachments/attachment-store.ts";
import type { Content, MediaPart } from "../../client/protocol.ts";
import type { ContextMessage, ContextPart } from "../../memory/types.ts";
import { DramatisError, type InputIssue } from "../../shared/errors.ts";
import type { ConversationRecord } from "./state.ts";

/** The attachments of one conversation; `null` for one that it does not have. */
export interface ConversationMedia {
  head(id: string): Promise<Omit<Attachment, "bytes"> | null>;
  get(id: string): Promise<Attachment | null>;
}

/** What `store` keeps of a conversation; nothing where it is `null`. */
export function conversationMedia(
  store: AttachmentStore | null,
  record: () => Pick<ConversationRecord, "tenant" | "id">,
): { media?: ConversationMedia } {
  if (store === null) return {};
  const owner = () => {
    const { tenant, id: conversationId } = record();
    return { tenant, conversationId };
  };
  return { media: { head: (id) => store.head(owner(), id), get: (id) => store.get(owner(), id) } };
}

/** Bytes of the media that one request carries by value. */
export const MAX_MEDIA_BYTES = 16 * 1024 * 1024;

/** Throws `INVALID_INPUT` naming the part that is not acceptable, `UNAVAILABLE` if the attachments cannot be looked up. */
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
  throw new DramatisError("INVALID_INPUT", "The content names media that cannot be used.", { errors });
}

/** Whether anything must be looked up before a turn can begin. */
export function hasMedia(content: Content): boolean {
  return typeof content !== "string" && content.some((part) => part.type !== "text");
}

async function attachmentIssue(
  { type, url }: MediaPart,
  media: ConversationMedia | undefined,
): Promise<string | undefined> {
  const id = attachmentIdOf(url);
  if (id === undefined) return undefined;
  const info = await lookedUp((media ?? noStore()).head(id));
  if (info === null) return "This conversation has no such attachment: upload it here first.";
  return type === "image" && !info.mediaType.startsWith("image/")
    ? `Is ${info.mediaType}, not an image: send it as a file.`
    : undefined;
}

/** The same messages with the media that they name in them. Throws `UNAVAILABLE` where those cannot be had for now. */
export async function withMedia(
  messages: readonly ContextMessage[],
  media: ConversationMedia | undefined,
): Promise<ContextMessage[]> {
  let left = MAX_MEDIA_BYTES;
  const resolved: ContextMessage[] = [];
  for (const message of messages.toReversed()) {
    const parts: ContextPart[] = [];
    for (const part of (message.parts ?? []).toReversed()) {
      const given = await resolve(part, media, left);
      left -= byteLength(given);
      parts.unshift(given);
    }
    resolved.unshift(message.parts === undefined ? message : { ...message, parts });
  }
  return resolved;
}

async function resolve(
  part: ContextPart,
  media: ConversationMedia | undefined,
  maxBytes: number,
): Promise<ContextPart> {
  if (part.type === "text" || !("url" in part.source)) return part;
  const { url } = part.source;
  const held = readDataUrl(url);
  if (held !== undefined) {
    const given = { ...part, mediaType: held.mediaType, source: { base64: held.base64 } };
    return byteLength(given) <= maxBytes ? given : missing(part, "is not sent again, to save room");
  }
  const id = attachmentIdOf(url);
  if (id === undefined) return part;
  const store = media ?? noStore();
  const info = await lookedUp(store.head(id));
  if (info !== null && info.size > maxBytes) return missing(part, "is not sent again, to save room");
  const attachment = info === null ? null : await lookedUp(store.get(id));
  if (attachment === null) return missing(part, "is no longer there");
  const name = part.name ?? attachment.name;
  return {
    type: part.type,
    mediaType: attachment.mediaType,
    ...(name === undefined ? {} : { name }),
    source: { base64: toBase64(attachment.bytes) },
  };
}

function missing({ type, name }: Exclude<ContextPart, { type: "text" }>, why: string): ContextPart {
  return { type: "text", text: `[The ${type}${name === undefined ? "" : ` "${name}"`} ${why}.]` };
}

function byteLength(part: ContextPart): number {
  if (part.type === "text" || !("base64" in part.source)) return 0;
  return Math.ceil((part.source.base64.length * 3) / 4);
}

/** Characters are made of so many bytes at a time: a call takes no more arguments. */
const SLICE = 0x8000;

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let start = 0; start < bytes.length; start += SLICE) {
    binary += String.fromCharCode(...bytes.subarray(start, start + SLICE));
  }
  return btoa(binary);
}

/** What the store of attachments answers; a fault of its own passes. */
async function lookedUp<Found>(answer: Promise<Found>): Promise<Found> {
  try {
    return await answer;
  } catch (cause) {
    const message = "The attachments cannot be looked up for now.";
    throw new DramatisError("UNAVAILABLE", message, { retriable: true, cause });
  }
}

function noStore(): never {
  throw new DramatisError(
    "UNAVAILABLE",
    "Attachments need the R2 binding `BUCKET`; add it to the configuration.",
  );
}
