/** `/api/conversations/:id/events`: the conversation's frames as server-sent events, without end. */

import { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import type { HttpRoutes } from "../base/context.ts";
import { positionSchema, streamPosition } from "../base/query.ts";
import { events, refuseOtherMethods } from "../base/respond.ts";
import type { ApiOperation } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";
import { frame } from "../openapi/views.ts";
import { findConversation } from "./conversations.ts";

const PATH = "/api/conversations/:id/events";

export const eventOperations: readonly ApiOperation[] = [
  {
    id: "followConversation",
    method: "get",
    path: PATH,
    tag: "events",
    summary: "Follow a conversation as server-sent events",
    description:
      "A stream without end. Without `from` the first frame is a `snapshot`; with it come the frames after that number, then the partial text of messages in progress. An `EventSource` that reconnects continues by itself.",
    params: z.object({ id: ids.conversation }),
    query: z.object({ from: positionSchema.optional() }),
    headers: z.object({
      "Last-Event-ID": positionSchema.optional().meta({ description: "As `from`, and wins over it." }),
    }),
    answers: [{ status: 200, description: "Frames.", type: "text/event-stream", body: frame }],
    errors: ["NOT_FOUND", "INVALID_INPUT"],
  },
];

export function eventRoutes(app: HttpRoutes): void {
  app.get(PATH, async (context) => {
    const { principal, actors } = context.var;
    const from = streamPosition(context.req.query("from"), context.req.header("last-event-id"));
    const conversation = await findConversation(actors, principal, context.req.param("id"));
    if (context.req.method === "HEAD") unwrap(await conversation.view(principal));
    return events(context, async () =>
      unwrap(
        await conversation.subscribe(principal, {
          encoding: "sse",
          ...defined({ from }),
        }),
      ),
    );
  });
  refuseOtherMethods(app, PATH, ["GET"]);
}
