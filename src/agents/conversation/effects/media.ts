/**
 * The media in what users say: checked when a turn begins, fetched when a model is called.
 *
 * MEDIA-1  A turn begins only if every attachment it names is one of its conversation's, and an image where an image is
 *          said to be.
 * MEDIA-2  A model gets attachments by value. Those beyond `MAX_MEDIA_BYTES`, oldest first, and those that are gone, are
 *          replaced by a text that says so.
 * MEDIA-3  Attachments that cannot be reached for now are not gone: whoever sends is told to come again, and the attempt of
 *          a model call fails as one of its provider would.
 */

import { addressIssue, attachmentIdOf, readDataUrl } from "../../../attachments/attachment.ts";
import type { Attachment, AttachmentStore } from "../../../attachments/attachment-store.ts";
import type { ContextMessage, ContextPart } from "../../../model/messages.ts";
import type { Content, MediaPart } from "../../../protocol/frames.ts";
import { toBase64 } from "../../../shared/base64.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, type InputIssue } from "../../../shared/errors.ts";
import { issuesText } from "../../../shared/validation.ts";
import type { ConversationIdentity } from "../core/state.ts";

/** The attachments of one conversation; `null` for one that it does not have. */
export interface ConversationMedia {
  head(id: string): Promise<Omit<Attachment, "bytes"> | null>;
  get(id: string): Promise<Attachment | null>;
}

/** What `store` keeps of a conversation; nothing where it is `null`. */
export function conversationMedia(
  store: AttachmentStore | null,
  record: () => Pick<ConversationIdentity, "tenant" | "id">,
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
  throw new DramatisError(
    "INVALID_INPUT",
    `The content names media that cannot be used: ${issuesText(errors)}`,
    {
      errors,
    },
  );
}

/**
 * As `checkMedia`, but for a message whose turn has begun, before or meanwhile: what it names was there then, and may be
 * gone.
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
  const store = media ?? noStore();
  const info = await reached(() => store.head(id));
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
    resolved.unshift(message.parts === undefined ? message : { ...message, content: textIn(parts), parts });
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
  const info = await reached(() => store.head(id));
  if (info !== null && info.size > maxBytes) return missing(part, "is not sent again, to save room");
  const attachment = info === null ? null : await reached(() => store.get(id));
  if (attachment === null) return missing(part, "is no longer there");
  const name = part.name ?? attachment.name;
  return {
    type: part.type,
    mediaType: attachment.mediaType,
    ...defined({ name }),
    source: { base64: toBase64(attachment.bytes) },
  };
}

function missing({ type, name }: Exclude<ContextPart, { type: "text" }>, why: string): ContextPart {
  return { type: "text", text: `[The ${type}${name === undefined ? "" : ` "${name}"`} ${why}.]` };
}

/** What an adapter sends of a message in which no media are left. */
function textIn(parts: readonly ContextPart[]): string {
  return plainText(parts.filter((part) => part.type === "text"));
}

function byteLength(part: ContextPart): number {
  if (part.type === "text" || !("base64" in part.source)) return 0;
  return Math.ceil((part.source.base64.length * 3) / 4);
}

/** What the store answers; throws `UNAVAILABLE` where it fails (MEDIA-3). */
async function reached<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (cause) {
    console.error(cause);
    const message = "The attachments could not be looked up. Try again.";
    throw new DramatisError("UNAVAILABLE", message, { retriable: true, cause });
  }
}

function noStore(): never {
  throw new DramatisError(
    "UNAVAILABLE",
    "Attachments need the R2 binding `BUCKET`; add it to the configuration.",
  );
}
