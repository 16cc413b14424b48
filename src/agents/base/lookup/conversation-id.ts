/** New conversation ids, for callers that create a conversation by RPC: its actor is named by tenant and id. */
import { systemIds } from "../../../ports/system.ts";

/**
 * Returns a new conversation id: `conv_` and a ULID. Ids of one isolate ascend.
 *
 * @example
 * const id = newConversationId();
 * const conversation = await getAgentByName(ctx.exports.Conversation, `acme:${id}`);
 * await conversation.create(principal, { id, agentId: "guide" });
 */
export function newConversationId(): string {
  return `conv_${systemIds.ulid()}`;
}
