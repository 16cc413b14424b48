/** `/a2a/:id`: an agent for clients of A2A 1.0. */
import { z } from "zod";
import { agentCard } from "../../compat/a2a/card.ts";
import { rpcSchema } from "../../compat/a2a/requests.ts";
import { ids } from "../../protocol/scalars.ts";
import { unwrap } from "../../shared/errors.ts";
import { json, sse } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { offerOf } from "../routes/agents.ts";
import { answerRpc } from "./methods.ts";

const AGENT = "/a2a/:id";
const params = z.object({ id: ids.agent });

const answer = z.looseObject({ jsonrpc: z.literal("2.0") }).meta({
  id: "A2aAnswer",
  description: "An answer of JSON-RPC, with a `result` or an `error` of A2A 1.0.",
});
const card = z.looseObject({ name: z.string(), supportedInterfaces: z.array(z.unknown()) }).meta({
  id: "A2aAgentCard",
  description: "An agent card of A2A 1.0.",
});

export const a2aRoutes: readonly Route[] = [
  route(
    {
      id: "getAgentCard",
      method: "get",
      path: `${AGENT}/.well-known/agent-card.json`,
      tag: "a2a",
      summary: "Read the agent card of an agent",
      params,
      answers: ok("The card.", card),
    },
    async ({ params: { id } }, { principal, actors, libraries }, { req }) => {
      const identity = unwrap(await (await actors.agent(principal.tenant, id)).identity());
      const offer = await offerOf(libraries(principal.tenant).registry, identity);
      const url = `${new URL(req.url).origin}/a2a/${id}`;
      return json(agentCard({ id, ...offer }, { url, version: identity.updatedAt }));
    },
  ),
  route(
    {
      id: "callA2a",
      method: "post",
      path: AGENT,
      tag: "a2a",
      summary: "Call an agent with A2A",
      description:
        "Takes the requests of JSON-RPC of A2A 1.0. The results of `SendStreamingMessage` and `SubscribeToTask` are server-sent events.",
      params,
      body: rpcSchema,
      answers: [{ status: 200, description: "The answer, or its events.", body: answer, stream: answer }],
      errors: ["FORBIDDEN", "PERMISSION_DENIED", "TOO_MANY_TURNS"],
    },
    async ({ params: { id }, body }, ports, context) => {
      const { req } = context;
      const headers = { version: req.header("a2a-version"), traceparent: req.header("traceparent") };
      const result = await answerRpc({ ports, agentId: id, ...headers }, body);
      if (typeof result !== "function") return json(result);
      return sse(context, result);
    },
  ),
];
