/** What an adapter is told of a call beside the request: whose it is, for whom, and how it is ended. Pure. */

import { agentContextOf, extensionsOf, type RequestClass, runIdOf } from "../model/correlation.ts";
import { defined } from "../shared/defined.ts";
import type { PlannedTurn } from "./planner.ts";
import type { ProviderCallOptions } from "./provider-adapter.ts";
import type { ConversationTurn } from "./types.ts";

/** The options of the call that a turn makes by its plan. */
export function callOptions(
  { id: turnId, conversationId, agent, metadata }: ConversationTurn,
  { provider, model }: PlannedTurn,
  {
    streaming,
    requestClass,
    ...call
  }: Pick<ProviderCallOptions, "signal" | "parentCorrelationId"> & {
    streaming: boolean;
    requestClass?: RequestClass;
  },
): ProviderCallOptions {
  const site = { conversationId, turnId, agent, provider, model };
  return {
    ...{ conversationId, turnId, agent, ...call },
    correlationId: runIdOf(conversationId, turnId),
    buildAgentContext: () => agentContextOf(site, metadata),
    extensions: extensionsOf(site, {
      streaming,
      ...defined({ requestClass }),
    }),
    ...defined({ metadata }),
  };
}
