/** Entry `dramatis/actors`: actors of your own, and calls of the runtime's actors from your Worker. */

export * from "./actors-portable.ts";
export { SessionAgent } from "./agents/base/session-agent.ts";
export { completeOperation } from "./agents/conversation/results/complete-operation.ts";
