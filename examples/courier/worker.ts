import { dramatis } from "../../src/index.ts";
import { agents } from "./agents.ts";

const app = dramatis({ agents });

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
