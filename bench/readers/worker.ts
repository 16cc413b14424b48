/** The application under test: one agent without tools. */
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";

const persona = definePersona("reader", { identity: { systemPrompt: "You answer as asked." } });

const app = dramatis({
  libraries: [defineLibrary("readers", { personas: [persona], tools: [] })],
  agents: [{ id: "reader", persona: "readers/reader" }],
  limits: { requests: false, turns: false },
});

export const { Conversation, Agent, Executor } = app;
export default app.handler;
