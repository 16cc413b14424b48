/** New conversation ids, for callers that create a conversation by RPC: its actor is named by tenant and id. */
import { systemIds } from "../../../ports/system.ts";
import { inJurisdiction, type Jurisdiction } from "../../../shared/location.ts";

/**
 * Returns a new conversation id: `conv_` and a ULID, and the jurisdiction of the conversation. Ids of one isolate ascend.
 *
 * @example
 * const id = newConversationId();
 * const conversation = await getAgentByName(ctx.exports.Conversation, `acme:${id}`, locationOf(id));
 * await conversation.create(principal, { id, agentId: "guide" });
 */
export function newConversationId(jurisdiction?: Jurisdiction): string {
  return inJurisdiction(`conv_${systemIds.ulid()}`, jurisdiction);
}
