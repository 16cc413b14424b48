/** The deployable Worker: the built-in team of agents, the demo library, and the console. */
import { demoLibrary } from "../examples/demo/library.ts";
import { dramatis } from "./dramatis.ts";
import * as team from "./library/agents/team.ts";

const app = dramatis({
  libraries: [team.library, demoLibrary],
  // The console opens with the first agent. The demo's researcher can search the documentation.
  agents: [
    ...team.agents.filter(({ id }) => id !== "researcher"),
    { id: "researcher", persona: "demo/researcher" },
    { id: "assistant", persona: "demo/assistant" },
  ],
});

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Executor } = app;
export default app.handler;
