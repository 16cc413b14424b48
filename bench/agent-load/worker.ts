/**
 * The application under test: an agent without a budget, and an agent with a budget. Open conversations do not call the first
 * agent. Each turn leases a part of the second agent's budget. `POST /probe/OPERATION/AGENT` calls one method of an agent's actor.
 */
import { getAgentByName } from "agents";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import type { DramatisEnv } from "../../src/options.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import { unwrap } from "../../src/shared/errors.ts";

/** The tenant of a request in local mode. */
const TENANT = "local";

const persona = definePersona("reader", { identity: { systemPrompt: "You answer as asked." } });

const app = dramatis({
  libraries: [defineLibrary("load", { personas: [persona], tools: [] })],
  agents: [
    { id: "free", persona: "load/reader" },
    { id: "limited", persona: "load/reader", budget: { modelCalls: 1_000_000 } },
  ],
  limits: { requests: false, turns: false },
});

export const { Conversation, Agent, Executor } = app;

export default {
  async fetch(request: Request, env: DramatisEnv & Cloudflare.Env, ctx: ExecutionContext): Promise<Response> {
    const [, door, operation, agent] = new URL(request.url).pathname.split("/");
    if (door !== "probe") return app.handler.fetch(request, env, ctx);
    if (operation === "none") return new Response("done");
    const actors = Reflect.get(ctx.exports, "Agent");
    // SAFETY: the main module exports `Agent`, which implements this.
    const actor = (await getAgentByName(actors as never, `${TENANT}:${agent}`)) as unknown as AgentApi;
    if (operation === "persona") unwrap(await actor.persona());
    else unwrap(await actor.identity());
    return new Response("done");
  },
};
