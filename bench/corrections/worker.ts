/** The application under test: an agent that books days at an office on loopback. */
import { z } from "zod";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";

const book = defineTool({
  name: "book",
  description: "Books a day, in the place of another one if told to.",
  input: z.object({ office: z.string(), day: z.string(), instead: z.string().optional() }),
  effect: "once",
  async execute({ office, ...booking }) {
    const response = await fetch(office, { method: "POST", body: JSON.stringify(booking) });
    return response.json();
  },
});

const persona = definePersona("clerk", {
  identity: { systemPrompt: "You book days." },
  tools: { toolIds: ["book"] },
});

const app = dramatis({
  libraries: [defineLibrary("corrections", { personas: [persona], tools: [book] })],
  agents: [{ id: "clerk", persona: "corrections/clerk" }],
  limits: { requests: false, turns: false },
});

export const { Conversation, Agent, Executor } = app;
export default app.handler;
