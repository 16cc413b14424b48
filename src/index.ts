/** The package `dramatis`: the runtime of an application, the library builders, and the session primitives. */

export { SessionAgent } from "./agents/base/session-agent.ts";
export { completeOperation } from "./agents/conversation/complete-operation.ts";
export { dramatis } from "./dramatis.ts";
export * from "./portable.ts";
