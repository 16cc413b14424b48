import { dramatis } from "dramatis";
import { agents } from "./agents";

const app = dramatis({ agents });

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
