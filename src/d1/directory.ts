/**
 * The directory: lists of agents and conversations. The actors own the facts and write these rows. An outage of the
 * directory makes lists fail and nothing else.
 *
 * DIR-1  An upsert writes one row (and, once, one more for each user of a conversation), whatever was there before.
 * DIR-2  Every read is limited to one tenant and, without a role that reads all, to the principal's own conversations.
 * DIR-3  Lists ascend by creation. They continue after a cursor without loss or repetition while rows are added.
 */

import type { UsageTotals } from "../model/usage.ts";
import type { AgentIdentity } from "../protocol/agent-api.ts";
import type { AgentUsage, ConversationSummary } from "../protocol/views.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";

/** The usage of a conversation, as absolute totals, so that repeating a put changes nothing. */
export interface ConversationUsage extends UsageTotals {
  tenant: string;
  agentId: string;
  conversationId: string;
}

/** Every put of an agent or a conversation needs its own time of creation, which is part of the row's key. */
export interface Directory {
  putAgent(agent: AgentIdentity): Promise<void>;
  putConversation(tenant: string, conversation: ConversationSummary): Promise<void>;
  putUsage(usage: ConversationUsage): Promise<void>;
  /** Returns the published usage of an agent's conversations. Throws `UNAVAILABLE`. */
  usage(tenant: string, agentId: string): Promise<AgentUsage>;
  /** Throws `INVALID_INPUT` for an invalid cursor, `UNAVAILABLE` if the database does not answer. */
  agents(tenant: string, options?: PageOptions): Promise<Page<AgentIdentity>>;
  /** Returns the conversations that the principal may see. Throws as `agents`. */
  conversations(principal: Principal, options?: PageOptions): Promise<Page<ConversationSummary>>;
}
