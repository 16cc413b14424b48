/** An application with tools that act on the outside: each run is a request to the shop of a test. */
import { z } from "zod";
import { dramatis } from "../../src/dramatis.ts";
import {
  defineLibrary,
  definePersona,
  defineTool,
  type ToolContext,
} from "../../src/library/define/define.ts";

const input = z.object({ url: z.string() });

async function post({ url }: z.output<typeof input>, { operationId, signal }: ToolContext): Promise<unknown> {
  const headers = { "idempotency-key": operationId };
  const response = await fetch(url, { method: "POST", headers, body: "{}", signal });
  return response.json();
}

const charge = defineTool({ name: "charge", description: "Charges a card.", input, execute: post });

const reserve = defineTool({
  name: "reserve",
  description: "Reserves a table.",
  input,
  effect: "idempotent",
  execute: post,
});

const clerk = definePersona("clerk", {
  identity: { systemPrompt: "You are a clerk." },
  tools: { toolIds: ["charge", "reserve"] },
});

const app = dramatis({
  libraries: [defineLibrary("shop", { personas: [clerk], tools: [charge, reserve] })],
  agents: [{ id: "clerk", persona: "shop/clerk" }],
});

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
