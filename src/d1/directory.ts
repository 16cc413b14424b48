/**
 * The directory: what lists need of agents and conversations. The actors own the facts and write these rows; losing
 * the directory for a while makes lists fail and nothing else.
 *
 * DIR-1  An upsert writes one row (and, once, one more for each user of a conversation), whatever was there before.
 * DIR-2  Every read is scoped to one tenant; without a role that reads all, to the conversations one takes part in.
 * DIR-3  Lists ascend by creation and continue after a cursor without loss or repetition while rows are added.
 */

import type { UsageTotals } from "../model/usage.ts";
import type { AgentIdentity } from "../protocol/agent-api.ts";
import type { AgentUsage, ConversationSummary } from "../protocol/views.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";

/** What a conversation used: absolute totals, so that putting them twice is putting them once. */
export interface ConversationUsage extends UsageTotals {
  tenant: string;
  agentId: string;
  conversationId: string;
}

/** Times of creation are part of a row's key: give the same one with every put. */
export interface Directory {
  putAgent(agent: AgentIdentity): Promise<void>;
  putConversation(tenant: string, conversation: ConversationSummary): Promise<void>;
  putUsage(usage: ConversationUsage): Promise<void>;
  /** What an agent's conversations used, as far as they have told. Throws `UNAVAILABLE` when the store does not answer. */
  usage(tenant: string, agentId: string): Promise<AgentUsage>;
  /** Throws `INVALID_INPUT` for a cursor that is none, `UNAVAILABLE` when the store does not answer. */
  agents(tenant: string, options?: PageOptions): Promise<Page<AgentIdentity>>;
  /** As `agents`; what the principal may see. */
  conversations(principal: Principal, options?: PageOptions): Promise<Page<ConversationSummary>>;
}
