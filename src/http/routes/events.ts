/** `/api/conversations/:id/events`: the conversation's frames as an endless stream of server-sent events. */
import { z } from "zod";
import { frame } from "../../protocol/conversation-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { filterQuery, positionHeader, positionSchema } from "../base/query.ts";
import { events } from "../base/respond.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";

const PATH = `${CONVERSATION}/events` as const;

export const eventRoutes: readonly Route[] = [
  route({
    id: "followConversation",
    method: "get",
    path: PATH,
    tag: "events",
    summary: "Follow a conversation as server-sent events",
    description:
      "An endless stream. Without `from` the first frame is a `snapshot`. With `from`, the frames after that number come first, then the partial text of messages in progress. An `EventSource` continues automatically when it reconnects.",
    params: conversationParams,
    query: z.object({ from: positionSchema.optional(), ...filterQuery }),
    headers: positionHeader,
    answers: [{ status: 200, description: "Frames.", type: "text/event-stream", body: frame }],
    handle: async ({ params, query, headers }, ports, context) => {
      const { principal } = ports;
      const conversation = await findConversation(ports, params.id);
      if (context.req.method === "HEAD") unwrap(await conversation.view(principal));
      const from = headers["Last-Event-ID"] ?? query.from;
      const { types, deltas } = query;
      const options = { encoding: "sse", ...defined({ from, types, deltas }) } as const;
      return events(context, async () => unwrap(await conversation.subscribe(principal, options)));
    },
  }),
];
