/** The application under test: one agent, and one tool per effect, whose execution is a request to the hit server. */
import { z } from "zod";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona, defineTool, type ToolContext } from "../../src/library/define.ts";
import { AGENT, TOOL_EFFECTS } from "./script.ts";

const input = z.object({ url: z.string() });

async function hit({ url }: z.output<typeof input>, { operationId, signal }: ToolContext): Promise<unknown> {
  const headers = { "idempotency-key": operationId };
  const response = await fetch(url, { method: "POST", headers, signal });
  return response.json();
}

const tools = TOOL_EFFECTS.map((effect) =>
  defineTool({ name: effect, description: `Acts outside; ${effect}.`, input, effect, execute: hit }),
);

const persona = definePersona(AGENT, {
  identity: { systemPrompt: "You follow the script." },
  // A few turns fill it, so conversations compact themselves.
  memory: { contextTokens: 4_000 },
  tools: { toolIds: [...TOOL_EFFECTS] },
});

const app = dramatis({
  libraries: [defineLibrary("kills", { personas: [persona], tools })],
  agents: [{ id: AGENT, persona: `kills/${AGENT}` }],
});

export const { Conversation, Agent, Executor } = app;
export default app.handler;
