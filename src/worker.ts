/** The deployable Worker: the built-in team of agents, the demo library, and the console. */
import { project } from "../examples/demo/developer.ts";
import { demoLibrary } from "../examples/demo/library.ts";
import { dramatis } from "./dramatis.ts";
import * as team from "./library/agents/team.ts";

const app = dramatis({
  libraries: [team.library, demoLibrary],
  // The console opens with the first agent. The demo's developer works on a repository, and its researcher searches the documentation.
  agents: [
    ...team.agents.map(({ id, persona }) =>
      id === "developer" || id === "researcher" ? { id, persona: `demo/${id}` } : { id, persona },
    ),
    { id: "assistant", persona: "demo/assistant" },
  ],
  projects: [project],
});

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
