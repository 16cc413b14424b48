/** What interceptors and telemetry are told of a request (it reaches no provider). Pure. */

import type { AgentContext } from "../../model/correlation.ts";
import { agentContextOf, extensionsOf, type RequestExtensions, runIdOf } from "../../model/correlation.ts";
import type { ModelRequest } from "../../model/gateway.ts";
import { defined } from "../../shared/defined.ts";

export interface RequestInfo {
  /** Generated; the same for all attempts of one logical request. */
  requestId: string;
  /** `{conversationId}:{turnId}`. */
  correlationId: string;
  parentCorrelationId?: string;
  /** From 1. */
  attempt: number;
  agentContext: AgentContext;
  extensions: RequestExtensions;
}

export function requestInfo(
  { profile, body, context, trace = {} }: ModelRequest,
  requestId: string,
): RequestInfo {
  const { conversationId, turnId, agentId } = context;
  const { parentCorrelationId, requestClass, metadata } = trace;
  const site = {
    conversationId,
    turnId,
    agent: agentId,
    provider: profile.provider,
    model: profile.modelId,
  };
  return {
    requestId,
    correlationId: runIdOf(conversationId, turnId),
    ...defined({ parentCorrelationId }),
    attempt: trace.attempt ?? 1,
    agentContext: agentContextOf(site, metadata),
    extensions: extensionsOf(site, {
      streaming: body.stream !== false,
      ...defined({ requestClass }),
    }),
  };
}
