/**
 * WebSocket doors of a conversation: `/conversations/:id` for our own protocol, `/agents/conversation/:id` for clients
 * of the Agents SDK.
 *
 * DOOR-1  The actor gets a request built here: from the client it has the handshake's own headers and a checked `from`,
 *         nothing else. Headers and query parameters that the SDK would act on cannot be smuggled in, and the client's
 *         token stays outside.
 * DOOR-2  Only these two paths lead to an actor, and only as WebSocket upgrades.
 * DOOR-3  Who may not read a conversation gets the refusal and nothing else, at both doors, whether it exists or not.
 */

import type { Context } from "hono";
import { z } from "zod";
import type { Entrance } from "../../agents/conversation/door/entrance.ts";
import { entranceRequest } from "../../agents/conversation/door/entrance.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { isUpgrade, legibleRefusal, withProtocol } from "../auth/bearer.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { problem } from "../base/problem.ts";
import { positionSchema, streamPosition } from "../base/query.ts";
import { notFound, refuseOtherMethods } from "../base/respond.ts";
import type { ApiOperation } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";

const PATHS = [
  ["/conversations/:id", "plain"],
  ["/agents/conversation/:id", "sdk"],
] as const;

export const socketOperations: readonly ApiOperation[] = PATHS.map(([path, entrance]) => ({
  id: entrance === "plain" ? "connect" : "connectSdk",
  method: "get",
  path,
  tag: "events",
  summary:
    entrance === "plain" ? "Follow and talk over a WebSocket" : "The same for clients of the Agents SDK",
  description:
    entrance === "plain"
      ? "A client gets frames (`Frame`) as over server-sent events, and sends `ClientFrame`s. One that does not validate is answered with an `error` frame and changes nothing."
      : "Messages of the SDK's own may come before the first frame.",
  params: z.object({ id: ids.conversation }),
  query: z.object({ from: positionSchema.optional() }),
  answers: [{ status: 101, description: "The connection is a WebSocket." }],
  errors: ["UPGRADE_REQUIRED", "FORBIDDEN", "NOT_FOUND", "INVALID_INPUT"],
}));

export function socketRoutes(app: HttpRoutes): void {
  for (const [path, entrance] of PATHS) {
    app.get(path, (context) => connect(context, context.req.param("id"), entrance));
    refuseOtherMethods(app, path, ["GET"]);
  }
}

async function connect(context: Context<HttpEnv>, id: string, entrance: Entrance): Promise<Response> {
  const { req, var: services } = context;
  if (!isConversationId(id)) return legibleRefusal(req.raw, notFound());
  if (!isUpgrade(req.raw)) {
    return problem("UPGRADE_REQUIRED", "Connect here with a WebSocket.", {
      headers: { upgrade: "websocket", connection: "upgrade" },
    });
  }
  const from = streamPosition(req.query("from"));
  const conversation = await services.actors.conversation(services.principal.tenant, id);
  const response = await conversation.fetch(entranceRequest(req.raw, services.principal, id, entrance, from));
  return withProtocol(req.raw, response);
}
