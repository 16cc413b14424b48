/** The application of the case `kills`, with a route that aborts an actor: `POST /abort/CONVERSATION`. */
import { getAgentByName } from "agents";
import type { DramatisEnv } from "../../src/options.ts";
import app, { Conversation as KillsConversation } from "../kills/worker.ts";

export { Agent, Executor } from "../kills/worker.ts";

/** The tenant of a request in local mode. */
const TENANT = "local";

export class Conversation extends KillsConversation {
  /** Resets the actor as a deployment does: it loses its memory, and its calls end. */
  abort(): void {
    this.ctx.abort("A new version is deployed.");
  }
}

export default {
  ...app,
  async fetch(request: Request, env: DramatisEnv, ctx: ExecutionContext): Promise<Response> {
    const { pathname } = new URL(request.url);
    const [, door, id] = pathname.split("/");
    if (door !== "abort") return app.fetch(request, env, ctx);
    // SAFETY: the main module exports the class under this name.
    const actors = Reflect.get(ctx.exports, "Conversation") as never;
    const actor = await getAgentByName<Cloudflare.Env, Conversation>(actors, `${TENANT}:${id}`);
    // The call ends with the actor.
    await actor.abort().catch(() => undefined);
    return new Response("aborted");
  },
};
