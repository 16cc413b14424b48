/** `/api/conversations/:id/attachments`: images and files for what is going to be said. */

import { ulid } from "ulid";
import { z } from "zod";
import {
  ATTACHMENT_SCHEME,
  type AttachmentInfo,
  isAttachmentId,
  mediaTypeOf,
} from "../../attachments/attachment.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import { validate } from "../../shared/validation.ts";
import { readBytes } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { json, notFound, refuseOtherMethods } from "../base/respond.ts";
import type { ApiOperation } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";
import { attachment } from "../openapi/views.ts";
import { findConversation } from "./conversations.ts";

const PATH = "/api/conversations/:id/attachments";

const uploadSchema = z.object({
  name: z.exactOptional(
    z
      .string()
      .min(1)
      .max(200)
      .refine((name) => name.isWellFormed(), "Must be well-formed Unicode.")
      .meta({ description: "What the file is called; models are told.", example: "map.png" }),
  ),
});

const params = z.object({ id: ids.conversation });

/** What a browser may do with an attachment that it opens: show it, and nothing else. */
const INERT = {
  "content-security-policy": "default-src 'none'; sandbox",
  "x-content-type-options": "nosniff",
};
/** It never changes, but who may see it does: caches keep it, and ask. */
const CACHED = { "cache-control": "private, no-cache" };
/** What browsers show as an image, whatever its bytes are. */
const SHOWN_INLINE = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export const attachmentOperations: readonly ApiOperation[] = [
  {
    id: "uploadAttachment",
    method: "post",
    path: PATH,
    tag: "conversations",
    summary: "Upload an image or a file",
    description:
      "The body is the file itself, its `Content-Type` what it is. The answer's `url` names it in the parts of content, in this conversation only. Needs the R2 binding `BUCKET`.",
    params,
    query: uploadSchema,
    answers: [{ status: 201, description: "The attachment.", body: attachment, location: true }],
    errors: ["NOT_FOUND", "FORBIDDEN", "TOO_LARGE", "INVALID_INPUT", "UNAVAILABLE"],
  },
  {
    id: "getAttachment",
    method: "get",
    path: `${PATH}/:attachmentId`,
    tag: "conversations",
    summary: "Read an attachment",
    params: params.extend({ attachmentId: z.string().meta({ description: "Id of an attachment." }) }),
    answers: [
      { status: 200, description: "The file, as it was uploaded.", type: "application/octet-stream" },
      { status: 304, description: "It is the one that `If-None-Match` names." },
    ],
    errors: ["NOT_FOUND", "UNAVAILABLE"],
  },
];

export function attachmentRoutes(app: HttpRoutes): void {
  app.post(PATH, async ({ req, var: { principal, actors, attachments, maxAttachmentBytes } }) => {
    const conversationId = req.param("id");
    const conversation = await findConversation(actors, principal, conversationId);
    unwrap(await conversation.checkSpeaker(principal));
    const { name } = validate(uploadSchema, req.query());
    const mediaType = mediaTypeOf(req.header("content-type") ?? null);
    if (mediaType === undefined) {
      throw new DramatisError(
        "INVALID_INPUT",
        "Say what the file is: give a `Content-Type` such as image/png.",
      );
    }
    const bytes = await readBytes(req.raw, maxAttachmentBytes);
    if (bytes.byteLength === 0) throw new DramatisError("INVALID_INPUT", "The file is empty.");
    const info: AttachmentInfo = {
      id: `att_${ulid()}`,
      mediaType,
      size: bytes.byteLength,
      ...defined({ name }),
    };
    await attachments().put({ tenant: principal.tenant, conversationId }, { ...info, bytes });
    const view = { ...info, url: `${ATTACHMENT_SCHEME}${info.id}` };
    return json(view, 201, `${req.path}/${info.id}`);
  });
  refuseOtherMethods(app, PATH, ["POST"]);

  app.get(`${PATH}/:attachmentId`, async ({ req, var: { principal, actors, attachments } }) => {
    const conversationId = req.param("id");
    const conversation = await findConversation(actors, principal, conversationId);
    unwrap(await conversation.view(principal));
    const id = req.param("attachmentId");
    if (!isAttachmentId(id)) return notFound();
    const store = attachments();
    const owner = { tenant: principal.tenant, conversationId };
    const etag = `"${id}"`;
    const isKnown = req.header("if-none-match") === etag;
    if (isKnown && (await store.head(owner, id)) !== null) {
      return new Response(null, { status: 304, headers: { ...CACHED, etag } });
    }
    const found = await store.get(owner, id);
    if (found === null) return notFound();
    const { mediaType, name, bytes } = found;
    const disposition = SHOWN_INLINE.has(mediaType) ? "inline" : "attachment";
    return new Response(bytes, {
      headers: {
        ...INERT,
        "content-type": mediaType,
        "content-disposition":
          name === undefined ? disposition : `${disposition}; filename*=UTF-8''${encodeName(name)}`,
        ...CACHED,
        etag,
      },
    });
  });
  refuseOtherMethods(app, `${PATH}/:attachmentId`, ["GET"]);
}

/** As RFC 8187 has it. */
function encodeName(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
