/**
 * The application under test: agents with memory, and an agent without. `POST /memory/OPERATION/AGENT` calls an agent's actor over RPC, as
 * another Worker does.
 */
import { getAgentByName } from "agents";
import { indexes } from "../../src/agents/agent/memory-agent.ts";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import type { DramatisEnv } from "../../src/options.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryReader } from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { AGENTS, REMEMBERING, WITHOUT } from "./protocol.ts";

/** The tenant of a request in local mode. */
const TENANT = "local";
const READER: MemoryReader = { principal: { tenant: TENANT, subject: "local", roles: ["admin"] } };

const identity = { systemPrompt: "You answer as asked." };
const without = definePersona("without", { identity });
const remembering = definePersona("remembering", {
  identity,
  memory: { scope: "agent", recall: {}, memoryTools: false },
});

const app = dramatis({
  libraries: [defineLibrary("load", { personas: [without, remembering], tools: [] })],
  agents: [
    { id: WITHOUT, persona: "load/without" },
    ...[REMEMBERING, ...AGENTS].map((id) => ({ id, persona: "load/remembering" as const })),
  ],
  limits: { requests: false, turns: false },
});

export const { Conversation, Agent, Executor } = app;

export default {
  async fetch(request: Request, env: DramatisEnv & Cloudflare.Env, ctx: ExecutionContext): Promise<Response> {
    const [, door, operation, id] = new URL(request.url).pathname.split("/");
    if (door !== "memory") return app.handler.fetch(request, env, ctx);
    const actors = Reflect.get(ctx.exports, "Agent");
    // SAFETY: the main module exports `Agent`, which implements this.
    const actor = (await getAgentByName(actors as never, `${TENANT}:${id}`)) as unknown as AgentApi;
    switch (operation) {
      case "bytes":
        return Response.json(indexes.bytes);
      case "identity":
        return Response.json(unwrap(await actor.identity()).id);
      case "write": {
        const author = { kind: "principal", subject: "local" } as const;
        const written = unwrap(await actor.writeMemories({ reader: READER, author }, await request.json()));
        return Response.json(written.length);
      }
      case "search": {
        const query = await request.text();
        const { matches, semantic } = unwrap(await actor.searchMemories(READER, { query }));
        return Response.json({ found: matches.map(({ memory }) => memory.content), semantic });
      }
      default:
        return new Response("There is no such operation.", { status: 404 });
    }
  },
};
