/** `/api/conversations/:id/events`: the conversation's frames as server-sent events, without end. */
import { unwrap } from "../shared/errors.ts";
import type { HttpRoutes } from "./context.ts";
import { findConversation } from "./conversations.ts";
import { streamPosition } from "./query.ts";
import { events, refuseOtherMethods } from "./respond.ts";

const PATH = "/api/conversations/:id/events";

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
          ...(from === undefined ? {} : { from }),
        }),
      ),
    );
  });
  refuseOtherMethods(app, PATH, ["GET"]);
}
