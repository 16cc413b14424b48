/**
 * WebSocket connections to a conversation: `/conversations/:id` for the project's own protocol,
 * `/agents/conversation/:id` for clients of the Agents SDK.
 *
 * DOOR-1  This file builds the actor's request from the handshake headers, the principal and checked options only. A
 *         client cannot send headers or query parameters that the SDK acts on, and its token never reaches the actor.
 * DOOR-2  Only these two paths, and `/api/runs/:id/events`, lead to an actor, and only as WebSocket upgrades.
 * DOOR-3  A principal without read access gets no frames. On both paths the refusal is the same as for an unknown
 *         conversation.
 */

import type { Context } from "hono";
import { z } from "zod";
import { type Entrance, entranceRequest } from "../../protocol/upgrade-request.ts";
import { defined } from "../../shared/defined.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { isUpgrade, legibleRefusal, withProtocol } from "../auth/bearer.ts";
import type { HttpEnv } from "../base/context.ts";
import { problem, problemOf } from "../base/problem.ts";
import { positionSchema, streamPosition } from "../base/query.ts";
import { nothingNamed } from "../base/respond.ts";
import { type Route, rawRoute } from "../openapi/route.ts";
import { conversationParams } from "./conversations.ts";

export const acksSchema = z.literal("1").meta({
  description: "The client answers each `mark` with an `ack`, and so gets any amount over one connection.",
});

const described = {
  method: "get",
  tag: "events",
  params: conversationParams,
  query: z.object({ from: positionSchema.optional(), acks: acksSchema.optional() }),
  answers: [{ status: 101, description: "The connection is a WebSocket." }],
  errors: ["UPGRADE_REQUIRED", "FORBIDDEN", "NOT_FOUND", "INVALID_INPUT"],
} as const;

export const socketRoutes: readonly Route[] = [
  rawRoute(
    {
      ...described,
      id: "connect",
      path: "/conversations/:id",
      summary: "Follow and talk over a WebSocket",
      description:
        "The server sends the frames (`Frame`) of the event stream. The client sends `ClientFrame`s. An invalid `ClientFrame` is ignored and answered with an `error` frame.",
    },
    (context) => connect(context, "plain"),
  ),
  rawRoute(
    {
      ...described,
      id: "connectSdk",
      path: "/agents/conversation/:id",
      summary: "The same for clients of the Agents SDK",
      description: "Messages of the SDK may precede the first frame.",
    },
    (context) => connect(context, "sdk"),
  ),
];

async function connect(context: Context<HttpEnv, "/:id">, entrance: Entrance): Promise<Response> {
  const {
    req,
    var: { principal, actors },
  } = context;
  const id = req.param("id");
  if (!isConversationId(id)) return legibleRefusal(req.raw, problemOf(nothingNamed("conversation", id), ""));
  if (!isUpgrade(req.raw)) {
    return problem("UPGRADE_REQUIRED", "Connect with a WebSocket.", {
      headers: { upgrade: "websocket", connection: "upgrade" },
    });
  }
  const from = streamPosition(req.query("from"));
  const conversation = await actors.conversation(principal.tenant, id);
  const options = { ...defined({ from }), acks: req.query("acks") === "1" };
  const response = await conversation.fetch(entranceRequest(req.raw, principal, id, entrance, options));
  return withProtocol(req.raw, response);
}
