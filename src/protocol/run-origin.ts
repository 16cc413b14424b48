/**
 * The origin of a run: the call of a tool that started it.
 *
 * INVITE-1  Only a conversation says that it has started a run: no request over HTTP and no trigger has an origin, and the id of the run must
 *           derive from the operation that the origin names. What a run starts has the origin of the run above.
 */
import { z } from "zod";
import { agentIdSchema } from "../shared/id-schemas.ts";
import { isConversationId, isOperationId } from "../shared/identifiers.ts";
import { type CalledMemory, calledMemorySchema } from "./tool-memory.ts";

/** The call of a tool that started a run. The conversation is one of the run's tenant. */
export interface RunOrigin {
  conversationId: string;
  turnId: string;
  operationId: string;
  /** From 1. */
  attempt: number;
  /** The agent that called the tool. */
  agentId: string;
  /** The rights of the call in the memory of this agent, which those of the run's tasks are; absent where it has none. */
  memory?: CalledMemory;
}

export const runOriginSchema: z.ZodType<RunOrigin> = z.strictObject({
  conversationId: z.string().refine(isConversationId, "Must be the id of a conversation."),
  turnId: z.string().min(1).max(200),
  operationId: z.string().refine(isOperationId, "Must be the id of an operation."),
  attempt: z.int().min(1),
  agentId: agentIdSchema,
  memory: calledMemorySchema.exactOptional(),
});
