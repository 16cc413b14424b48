/** `/api/conversations`: the list of conversations, and the marks of its reader: pins and archived conversations. */
import { z } from "zod";
import type { ConversationMark } from "../../d1/directory.ts";
import { conversationSummary } from "../../protocol/conversation-schemas.ts";
import { conflict, unwrap } from "../../shared/errors.ts";
import { pageSchema } from "../base/query.ts";
import { empty, page } from "../base/respond.ts";
import { onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, CONVERSATIONS, conversationParams, findConversation } from "./conversations.ts";

function markFilter(description: string) {
  return z
    .enum(["true", "false"], "Must be `true` or `false`.")
    .transform((text) => text === "true")
    .describe(description)
    .exactOptional();
}

const listQuery = pageSchema.extend({
  order: pageSchema.shape.order.describe(
    "Order by the key of `sort`. Default: `asc`; with `sort=activity`: `desc`.",
  ),
  sort: z
    .enum(["created", "activity"], "Must be `created` or `activity`.")
    .describe(
      "By creation, or by latest activity. A conversation that becomes active moves to its new place: pages by activity may omit it, and never repeat it. Default: `created`.",
    )
    .exactOptional(),
  pinned: markFilter("With `true` only conversations that the caller pinned, with `false` only others."),
  archived: markFilter(
    "With `true` only conversations that the caller archived, with `false` only others. Default: `false`.",
  ),
});

export const conversationListRoutes: readonly Route[] = [
  route({
    id: "listConversations",
    method: "get",
    path: CONVERSATIONS,
    tag: "conversations",
    summary: "List conversations",
    description:
      "The conversations of the caller. For operators and administrators, all conversations of the tenant. Without the conversations that the caller archived.",
    query: listQuery,
    answers: onePage("conversations", conversationSummary),
    handle: async ({ query }, { principal, directory }) =>
      page("conversations", await directory().conversations(principal, query)),
  }),
  ...marking("pinned", "pin", {
    set: [
      "pinConversation",
      "Pin a conversation",
      "Your lists mark the conversation, and can list it alone.",
    ],
    remove: ["unpinConversation", "Unpin a conversation", "The conversation stays in your lists."],
  }),
  ...marking("archived", "archive", {
    set: [
      "archiveConversation",
      "Archive a conversation",
      "Your lists omit the conversation until a new turn begins in it, or you remove it from the archive.",
    ],
    remove: [
      "unarchiveConversation",
      "Remove a conversation from the archive",
      "Your lists contain it again.",
    ],
  }),
];

type Texts = [id: string, summary: string, effect: string];

function marking(
  mark: ConversationMark,
  name: "pin" | "archive",
  { set, remove }: { set: Texts; remove: Texts },
): Route[] {
  const of = (method: "put" | "delete", [id, summary, effect]: Texts) =>
    route({
      id,
      method,
      path: `${CONVERSATION}/${name}`,
      tag: "conversations",
      summary,
      description: `${effect} For readers of the conversation. The lists of other people stay as they are. Repeating the request is a no-op.`,
      params: conversationParams,
      answers: [{ status: 204, description: "Your lists have the change." }],
      errors: method === "put" ? ["NOT_FOUND", "CONFLICT"] : ["NOT_FOUND"],
      handle: async ({ params }, ports, { var: { clock } }) => {
        const { principal, directory } = ports;
        const view = unwrap(await (await findConversation(ports, params.id)).view(principal));
        const { id, createdAt, listed } = view;
        if (method === "put" && listed === false)
          throw conflict(`No list has this conversation, so you cannot ${name} it.`);
        const conversation = { id, createdAt: Date.parse(createdAt) };
        await directory().mark(principal, conversation, mark, method === "put" ? clock.now() : null);
        return empty();
      },
    });
  return [of("put", set), of("delete", remove)];
}
