/**
 * WebSocket connections to a conversation: `/conversations/:id` for the project's own protocol,
 * `/agents/conversation/:id` for clients of the Agents SDK.
 *
 * SOCKET-1  This file builds the actor's request from the handshake headers, the principal and checked options only. A
 *           client cannot send headers or query parameters that the SDK acts on, and its token never reaches the actor.
 * SOCKET-2  Only these two paths, and `/api/runs/:id/events`, lead to an actor, and only as WebSocket upgrades.
 * SOCKET-3  A principal without read access gets no frames. On both paths the refusal is the same as for an unknown
 *           conversation.
 */
import type { Context } from "hono";
import { z } from "zod";
import { type SocketProtocol, upgradeRequest } from "../../protocol/upgrade-request.ts";
import { defined } from "../../shared/defined.ts";
import { isUpgrade, withProtocol } from "../auth/bearer.ts";
import type { HttpEnv } from "../base/context.ts";
import { problem } from "../base/problem.ts";
import { filterQuery, positionSchema } from "../base/query.ts";
import { type Route, route } from "../openapi/route.ts";
import { conversationParams } from "./conversations.ts";

/** The query of an upgrade. Any other value of `acks` counts as absent. */
export const socketQuery = z.object({
  from: positionSchema.optional(),
  acks: z
    .literal("1")
    .optional()
    .catch(undefined)
    .describe("The client answers each `mark` with an `ack`, and so gets any amount over one connection."),
});

const conversationQuery = z.object({ ...socketQuery.shape, ...filterQuery });

export function socketOptions({ from, acks, types, deltas }: z.output<typeof conversationQuery>) {
  return { ...defined({ from, types, deltas }), acks: acks === "1" };
}

const described = {
  method: "get",
  tag: "events",
  params: conversationParams,
  query: conversationQuery,
  answers: [{ status: 101, description: "The connection is a WebSocket." }],
  errors: ["UPGRADE_REQUIRED", "FORBIDDEN"],
} as const;

export const socketRoutes: readonly Route[] = [
  route({
    ...described,
    id: "connect",
    path: "/conversations/:id",
    summary: "Follow and talk over a WebSocket",
    description:
      "The server sends the frames (`Frame`) of the event stream. The client sends `ClientFrame`s. An invalid `ClientFrame` is ignored and answered with an `error` frame.",
    handle: (input, _, context) => connect(input, context, "plain"),
  }),
  route({
    ...described,
    id: "connectSdk",
    path: "/agents/conversation/:id",
    summary: "The same for clients of the Agents SDK",
    description: "Messages of the SDK may precede the first frame.",
    handle: (input, _, context) => connect(input, context, "sdk"),
  }),
];

async function connect(
  { params: { id }, query }: { params: { id: string }; query: z.output<typeof conversationQuery> },
  { req, var: { principal, actors } }: Context<HttpEnv>,
  protocol: SocketProtocol,
): Promise<Response> {
  if (!isUpgrade(req.raw))
    return problem("UPGRADE_REQUIRED", "Connect with a WebSocket.", {
      headers: { upgrade: "websocket", connection: "upgrade" },
    });
  const conversation = await actors.conversation(principal.tenant, id);
  const request = upgradeRequest(req.raw, principal, id, protocol, socketOptions(query));
  return withProtocol(req.raw, await conversation.fetch(request));
}
