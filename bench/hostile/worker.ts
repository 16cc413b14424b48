/** The application of the case `hostile`: one agent without tools, whose model is the runner's. */
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona } from "../../src/library/define.ts";
import { AGENT, TENANTS } from "./agent.ts";

const persona = definePersona(AGENT, { identity: { systemPrompt: "You answer with JSON." } });

const app = dramatis({
  libraries: [defineLibrary("hostile", { personas: [persona] })],
  agents: TENANTS.map((tenant) => ({ tenant, id: AGENT, persona: `hostile/${AGENT}` })),
});

export const { Conversation, Agent, Executor } = app;
export default app.handler;
