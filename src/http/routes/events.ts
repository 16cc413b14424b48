/** `/api/conversations/:id/events`: the conversation's frames as an endless stream of server-sent events. */

import { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import type { HttpRoutes } from "../base/context.ts";
import { positionSchema, streamPosition } from "../base/query.ts";
import { events } from "../base/respond.ts";
import type { ApiOperation } from "../openapi/operation.ts";
import { frame } from "../openapi/views.ts";
import { CONVERSATION, conversationOf, conversationParams } from "./conversations.ts";

const PATH = `${CONVERSATION}/events` as const;

export const eventOperations: readonly ApiOperation[] = [
  {
    id: "followConversation",
    method: "get",
    path: PATH,
    tag: "events",
    summary: "Follow a conversation as server-sent events",
    description:
      "An endless stream. Without `from` the first frame is a `snapshot`. With `from`, the frames after that number come first, then the partial text of messages in progress. An `EventSource` continues by itself when it reconnects.",
    params: conversationParams,
    query: z.object({ from: positionSchema.optional() }),
    headers: z.object({
      "Last-Event-ID": positionSchema
        .optional()
        .meta({ description: "As `from`. Has precedence over `from`." }),
    }),
    answers: [{ status: 200, description: "Frames.", type: "text/event-stream", body: frame }],
    errors: ["NOT_FOUND", "INVALID_INPUT"],
  },
];

export function eventRoutes(app: HttpRoutes): void {
  app.get(PATH, async (context) => {
    const { principal } = context.var;
    const from = streamPosition(context.req.query("from"), context.req.header("last-event-id"));
    const conversation = await conversationOf(context);
    if (context.req.method === "HEAD") unwrap(await conversation.view(principal));
    const options = { encoding: "sse", ...defined({ from }) } as const;
    return events(context, async () => unwrap(await conversation.subscribe(principal, options)));
  });
}
