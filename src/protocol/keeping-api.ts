/** The part of the interface of conversations and agents that deletes them and what they hold. */
import type { Result } from "../shared/errors.ts";
import type { Principal } from "../shared/principal.ts";

export interface ConversationKeepingApi {
  /**
   * Deletes the conversation: its work stops, and from then on everything is `NOT_FOUND`. Its data follow by themselves. Whoever may end
   * it may delete it, and operators.
   */
  remove(principal: Principal): Promise<Result<null>>;
  /**
   * Takes a deleted agent out of the conversation, for its actor: the conversation is deleted where the agent was its only one. Does
   * nothing where there is no conversation.
   */
  removeAgent(principal: Principal, agentId: string): Promise<Result<null>>;
}

export interface AgentKeepingApi {
  /**
   * Deletes the agent with its memory, and the conversations of which it is the only agent. From then on everything is `NOT_FOUND`.
   * `FORBIDDEN` without the role of an author.
   */
  remove(principal: Principal): Promise<Result<null>>;
}
