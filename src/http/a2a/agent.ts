/** An agent for clients of A2A: its address, its card, and its requests. */
import type { Context } from "hono";
import { agentCard } from "../../compat/a2a/card.ts";
import { unwrap } from "../../shared/errors.ts";
import type { HttpEnv } from "../base/context.ts";
import { offerOf } from "../routes/agents.ts";
import type { A2aCall } from "./tasks.ts";

export const AGENT = "/a2a/:id";

/** Returns the card of an agent of the caller's tenant. Throws `NOT_FOUND`. */
export async function cardOf({ req, var: ports }: Context<HttpEnv>, id: string): Promise<object> {
  const { principal, actors, libraries } = ports;
  const identity = unwrap(await (await actors.agent(principal.tenant, id)).identity());
  const offer = await offerOf(libraries(principal.tenant).registry, identity);
  const url = `${new URL(req.url).origin}/a2a/${id}`;
  return agentCard(
    { id, ...offer },
    {
      ...{ url, version: identity.updatedAt, sendsNotices: ports.webhookProblem !== undefined },
    },
  );
}

export function callOf(context: Context<HttpEnv>): A2aCall {
  const { req, var: ports } = context;
  const agentId = req.param("id") ?? "";
  return {
    ...{ ports, agentId, card: () => cardOf(context, agentId) },
    version: req.header("a2a-version") ?? req.query("A2A-Version"),
    traceparent: req.header("traceparent"),
  };
}
