/**
 * The origin of a run: the tool call that started it.
 *
 * INVITE-1  Only a conversation can set the origin of a run. Requests over HTTP and triggers have no origin. The id
 *           of the run must derive from the operation that the origin names. A run's descendants inherit its origin.
 */
import { z } from "zod";
import { agentIdSchema } from "../shared/id-schemas.ts";
import { isConversationId } from "../shared/identifiers.ts";
import { callAddressSchema } from "./call-address.ts";
import { calledMemorySchema } from "./tool-memory.ts";

export const runOriginSchema = z.strictObject({
  conversationId: z.string().refine(isConversationId, "Must be the id of a conversation."),
  turnId: z.string().min(1).max(200),
  ...callAddressSchema.shape,
  /** The agent that called the tool. */
  agentId: agentIdSchema,
  /** The rights of the call in the memory of this agent. The run's tasks have the same rights. Absent if the call has no rights. */
  memory: calledMemorySchema.exactOptional(),
  /** The workspace of the calling conversation. */
  workspace: z.string().min(1).max(200).exactOptional(),
});

/** The call of a tool that started a run. The conversation belongs to the run's tenant. */
export type RunOrigin = z.infer<typeof runOriginSchema>;
