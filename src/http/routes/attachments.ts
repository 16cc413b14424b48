/** `/api/conversations/:id/attachments`: images and files for later messages. */
import { ulid } from "ulid";
import { z } from "zod";
import {
  ATTACHMENT_SCHEME,
  type AttachmentInfo,
  isAttachmentId,
  mediaTypeOf,
} from "../../attachments/attachment.ts";
import { attachment } from "../../protocol/conversation-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { invalid, unwrap } from "../../shared/errors.ts";
import { readBytes } from "../base/body.ts";
import { json, nothingNamed } from "../base/respond.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";

const ATTACHMENTS = `${CONVERSATION}/attachments` as const;
const ATTACHMENT = `${ATTACHMENTS}/:attachmentId` as const;
const attachmentParams = conversationParams.extend({
  attachmentId: z.string().refine(isAttachmentId).describe("Id of an attachment."),
});

const uploadSchema = z.object({
  name: z
    .string()
    .min(1)
    .max(200)
    .refine((name) => name.isWellFormed(), "Must be well-formed Unicode.")
    .meta({ description: "Name of the file. Models see it.", example: "map.png" })
    .exactOptional(),
});

/** An attachment never changes, but the right to read it may: caches must revalidate. */
const CACHED = { "cache-control": "private, no-cache" };
/** The types that browsers show only as an image. */
const SHOWN_INLINE = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export const attachmentRoutes: readonly Route[] = [
  route({
    id: "uploadAttachment",
    method: "post",
    path: ATTACHMENTS,
    tag: "conversations",
    summary: "Upload an image or a file",
    description:
      "The body is the file, with its media type as `Content-Type`. Use the `url` of the answer in the parts of content; it is valid in this conversation only. Needs the R2 binding `BUCKET`.",
    params: conversationParams,
    query: uploadSchema,
    answers: [{ status: 201, description: "The attachment.", body: attachment, location: true }],
    errors: ["FORBIDDEN", "TOO_LARGE", "UNAVAILABLE"],
    handle: async ({ params: { id: conversationId }, query: { name } }, ports, { req }) => {
      const { principal, attachments, maxAttachmentBytes } = ports;
      const conversation = await findConversation(ports, conversationId);
      unwrap(await conversation.checkSpeaker(principal));
      const mediaType = mediaTypeOf(req.header("content-type") ?? null);
      if (mediaType === undefined)
        throw invalid("The media type is missing. Send a `Content-Type` such as image/png.");
      const bytes = await readBytes(req.raw, maxAttachmentBytes);
      if (bytes.byteLength === 0) throw invalid("The file is empty. Send at least one byte.");
      const info: AttachmentInfo = {
        id: `att_${ulid()}`,
        mediaType,
        size: bytes.byteLength,
        ...defined({ name }),
      };
      await attachments().put({ tenant: principal.tenant, conversationId }, { ...info, bytes });
      const view = { ...info, url: `${ATTACHMENT_SCHEME}${info.id}` };
      return json(view, 201, `${req.path}/${info.id}`);
    },
  }),
  route({
    id: "getAttachment",
    method: "get",
    path: ATTACHMENT,
    tag: "conversations",
    summary: "Read an attachment",
    params: attachmentParams,
    answers: [
      { status: 200, description: "The file as it was uploaded.", type: "application/octet-stream" },
      { status: 304, description: "The attachment matches `If-None-Match`." },
    ],
    errors: ["UNAVAILABLE"],
    handle: async ({ params: { id: conversationId, attachmentId: id } }, ports, { req }) => {
      const { principal } = ports;
      const conversation = await findConversation(ports, conversationId);
      unwrap(await conversation.view(principal));
      const store = ports.attachments();
      const owner = { tenant: principal.tenant, conversationId };
      const etag = `"${id}"`;
      const isKnown = req.header("if-none-match") === etag;
      if (isKnown && (await store.head(owner, id)) !== null)
        return new Response(null, { status: 304, headers: { ...CACHED, etag } });
      const found = await store.get(owner, id);
      if (found === null) throw nothingNamed("attachment", id);
      const { mediaType, name, bytes } = found;
      const disposition = SHOWN_INLINE.has(mediaType) ? "inline" : "attachment";
      return new Response(bytes, {
        headers: {
          "content-type": mediaType,
          "content-disposition":
            name === undefined ? disposition : `${disposition}; filename*=UTF-8''${encodeName(name)}`,
          ...CACHED,
          etag,
        },
      });
    },
  }),
];

/** Encodes a file name as RFC 8187 requires. */
function encodeName(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
