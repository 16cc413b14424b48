/**
 * An application with turns that fail, and an actor with messages that are refused. A header makes its sender a member; other senders
 * are the local administrator.
 */
import { z } from "zod";
import { newOperationId } from "../../../src/agents/base/mailbox/operation-id.ts";
import { SessionAgent } from "../../../src/agents/base/session-agent.ts";
import { dramatis } from "../../../src/dramatis.ts";
import { localAuthorize } from "../../../src/http/auth/authorize.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../../src/library/define/define.ts";
import { DramatisError } from "../../../src/shared/errors.ts";

const stock = defineTool({
  name: "stock",
  description: "Counts the pieces of an item in the warehouse.",
  input: z.object({ item: z.string() }),
  effect: "idempotent",
  retry: { maxAttempts: 3, backoffMs: 50 },
  execute: async ({ item }, { signal }) => {
    // A test stops the turn during this call.
    if (item === "screws") await new Promise((stopped) => signal.addEventListener("abort", stopped));
    throw new Error(`The warehouse has no shelf for ${item}.`);
  },
});

const priced = defineModelProfile("priced", {
  provider: "offline",
  modelId: "offline-1",
  costPer1kInput: 1,
  costPer1kOutput: 2,
});

const clerk = definePersona("clerk", {
  name: "Clerk",
  identity: { systemPrompt: "You are a clerk of the warehouse.", modelProfileId: "priced" },
  tools: { toolIds: ["stock"] },
});

const porter = definePersona("porter", { name: "Porter", identity: { systemPrompt: "You carry." } });

const app = dramatis({
  libraries: [defineLibrary("shop", { personas: [clerk, porter], tools: [stock], modelProfiles: [priced] })],
  agents: [
    { id: "clerk", persona: "shop/clerk" },
    { id: "porter", persona: "shop/porter" },
  ],
  authorize: async (request, env) => {
    const subject = request.headers.get("x-member");
    return subject === null ? localAuthorize(request, env) : { subject, tenant: "local", roles: ["member"] };
  },
});

const parcel = z.strictObject({ parcel: z.string() });

/** Sends parcels to another courier, which refuses them until it is open. */
export class Courier extends SessionAgent {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env);
    this.mailbox.receives("parcel.sent", parcel, () => {
      if (ctx.storage.kv.get("open") !== true) throw new DramatisError("CONFLICT", "The door is closed.");
      return null;
    });
  }

  async post(): Promise<void> {
    const { armed } = this.ctx.storage.transactionSync(() => ({
      armed: this.mailbox.send({
        operationId: newOperationId(),
        to: { kind: "courier", tenant: "local", id: "receiver" },
        type: "parcel.sent",
        body: { parcel: "Books" },
      }),
    }));
    await armed;
  }

  unlock(): void {
    this.ctx.storage.kv.put("open", true);
  }
}

export const { Conversation, Agent, Coordinator, Trigger, Executor, EventLog, Workspace } = app;

export default {
  async fetch(request: Request, env: Cloudflare.Env, ctx: ExecutionContext): Promise<Response> {
    const { pathname } = new URL(request.url);
    // SAFETY: the configuration declares the class, so the exports have its namespace.
    const { Courier: couriers } = ctx.exports as unknown as { Courier: DurableObjectNamespace<Courier> };
    const courier = (id: string) => couriers.get(couriers.idFromName(`local:${id}`));
    if (pathname === "/api/test/post") await courier("sender").post();
    else if (pathname === "/api/test/unlock") await courier("receiver").unlock();
    else return app.handler.fetch(request, env, ctx);
    return new Response("done");
  },
};
