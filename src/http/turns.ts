/** `/api/conversations/:id/turns`: saying something, and reading what came of it. */
import { accepts } from "hono/accepts";
import { z } from "zod";
import { parseContent } from "../shared/content.ts";
import { DramatisError, unwrap } from "../shared/errors.ts";
import { isTurnId } from "../shared/identifiers.ts";
import { validate } from "../shared/validation.ts";
import { readJson } from "./body.ts";
import type { HttpRoutes } from "./context.ts";
import { findConversation } from "./conversations.ts";
import { pageOptions } from "./query.ts";
import { events, json, page, refuseOtherMethods } from "./respond.ts";

const identifier = z.string().min(1).max(200);
const startSchema = z.strictObject({
  content: z.unknown(),
  replyToMessageId: z.exactOptional(identifier),
  idempotencyKey: z.exactOptional(identifier),
});

export function turnRoutes(app: HttpRoutes): void {
  app.post("/api/conversations/:id/turns", async (context) => {
    const { principal, actors, maxBodyBytes } = context.var;
    const conversation = await findConversation(actors, principal, context.req.param("id"));
    const body = validate(startSchema, await readJson(context.req.raw, maxBodyBytes));
    const input = { ...body, content: parseContent(body.content) };
    const wanted = accepts(context, {
      header: "Accept",
      supports: ["application/json", "text/event-stream"],
      default: "application/json",
    });
    if (wanted === "text/event-stream") {
      const { frames } = unwrap(await conversation.streamTurn(principal, input, "sse"));
      return events(context, async () => frames);
    }
    const { turnId, messageId } = unwrap(await conversation.startTurn(principal, input));
    return json({ turnId, messageId }, 202, `${context.req.path}/${turnId}`);
  });

  app.get("/api/conversations/:id/turns", async ({ req, var: { principal, actors } }) => {
    const options = pageOptions(req.query());
    const conversation = await findConversation(actors, principal, req.param("id"));
    return page("turns", unwrap(await conversation.turns(principal, options)));
  });
  refuseOtherMethods(app, "/api/conversations/:id/turns", ["GET", "POST"]);

  app.get("/api/conversations/:id/turns/:turnId", async ({ req, var: { principal, actors } }) => {
    const conversation = await findConversation(actors, principal, req.param("id"));
    const turnId = req.param("turnId");
    if (!isTurnId(turnId)) throw new DramatisError("NOT_FOUND", `There is no turn "${turnId}".`);
    return json(unwrap(await conversation.turn(principal, turnId)));
  });
  refuseOtherMethods(app, "/api/conversations/:id/turns/:turnId", ["GET"]);
}
