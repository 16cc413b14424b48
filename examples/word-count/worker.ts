import { dramatis } from "../../src/index.ts";
import { library } from "./workflow.ts";

const app = dramatis({ libraries: [library] });

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
