import { dramatis } from "dramatis";
import { agents } from "./agents";
import { refund } from "./refund";

// Requests start the workflow as `app/refund`, and the clerk starts it with its tool.
const app = dramatis({ agents, workflows: [refund] });

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
