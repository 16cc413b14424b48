/** The actor that a call of the Executor comes from: its address, and the interface that it serves to the Executor. */
import type { CallContext } from "../shared/identifiers.ts";
import type { ActorAddress } from "./envelope.ts";
import type { TaskResultApi, ToolStateApi } from "./executor-api.ts";
import type { DeferApi } from "./operation-handle.ts";

/** Every actor that sends calls to the Executor serves this interface. Only Workers with a binding reach it. */
export interface CallerApi extends ToolStateApi, TaskResultApi, DeferApi {}

/**
 * Returns the address of the actor that makes a call: the conversation of its turn, or the coordinator of its run.
 *
 * @example callerOf({ tenant: "acme", projectId: "default", runId: "run_1", node: "review" }).kind // "coordinator"
 */
export function callerOf({ tenant, conversationId, runId }: CallContext): ActorAddress {
  return runId === undefined
    ? { kind: "conversation", tenant, id: conversationId }
    : { kind: "coordinator", tenant, id: runId };
}
