/** The deployable Worker: the runtime with the demo library and the console. */
import { demoLibrary } from "../examples/demo/library.ts";
import { dramatis } from "./dramatis.ts";

const app = dramatis({
  libraries: [demoLibrary],
  agents: [{ id: "assistant", persona: "demo/assistant" }],
});

export const { Conversation, Agent, Executor } = app;
export default app.handler;
