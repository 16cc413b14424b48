/** `/a2a/:id`: an agent for clients of A2A 1.0. */
import { z } from "zod";
import { rpcSchema } from "../../compat/a2a/requests.ts";
import { ids } from "../../protocol/scalars.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { AGENT, cardOf } from "./agent.ts";
import { answerRpc } from "./json-rpc.ts";
import { restRoutes } from "./rest-routes.ts";

const params = z.object({ id: ids.agent });

/** Only the caller may store a card. Seconds. */
const CARD_CACHE = "private, max-age=60";

const answer = z.looseObject({ jsonrpc: z.literal("2.0") }).meta({
  id: "A2aAnswer",
  description: "An answer of JSON-RPC, with a `result` or an `error` of A2A 1.0.",
});
const card = z.looseObject({ name: z.string(), supportedInterfaces: z.array(z.unknown()) }).meta({
  id: "A2aAgentCard",
  description: "An agent card of A2A 1.0.",
});

export const a2aRoutes: readonly Route[] = [
  route({
    id: "getAgentCard",
    method: "get",
    path: `${AGENT}/.well-known/agent-card.json`,
    tag: "a2a",
    errorFormat: "a2a",
    summary: "Read the agent card of an agent",
    params,
    answers: ok("The card.", card),
    handle: async ({ params: { id } }, _, context) => {
      const card = await cardOf(context, id);
      const response = json(card);
      response.headers.set("cache-control", CARD_CACHE);
      response.headers.set("etag", `"${await sha256Hex(JSON.stringify(card))}"`);
      return response;
    },
  }),
  route({
    id: "callA2a",
    method: "post",
    path: AGENT,
    tag: "a2a",
    errorFormat: "a2a",
    summary: "Call an agent with A2A",
    description:
      "Takes the requests of JSON-RPC of A2A 1.0. The results of `SendStreamingMessage` and `SubscribeToTask` are server-sent events.",
    params,
    body: rpcSchema,
    answers: [{ status: 200, description: "The answer, or its events.", body: answer, stream: answer }],
    errors: ["FORBIDDEN", "PERMISSION_DENIED", "TOO_MANY_TURNS"],
    handle: ({ body }, _, context) => answerRpc(context, body),
  }),
  ...restRoutes,
];
