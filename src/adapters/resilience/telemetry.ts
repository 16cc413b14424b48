/**
 * Data for telemetry and interceptors. None of it reaches a provider.
 *
 * RESIL-6  Each logical request is reported once, whatever its outcome. A failing sink changes nothing.
 */

import type { RequestOutcome } from "../../model/call-record.ts";
import {
  type AgentContext,
  agentContextOf,
  extensionsOf,
  type RequestExtensions,
  runIdOf,
} from "../../model/correlation.ts";
import type { ModelRequest } from "../../model/gateway.ts";
import type { TokenUsage } from "../../model/usage.ts";
import { defined } from "../../shared/defined.ts";

/** One attempt of a request, as interceptors and telemetry see it. */
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

/** The metrics of one logical request, with all of its attempts. */
export interface RequestMetrics {
  /** `{client}.{operation}`. */
  span: string;
  outcome: RequestOutcome;
  /** Describes the last attempt. */
  info: RequestInfo;
  usage?: TokenUsage;
  /** US dollars. */
  cost?: number;
}

/** Receives the metrics of each logical request. */
export type MetricsSink = (metrics: RequestMetrics) => void | Promise<void>;

/** Describes a request to interceptors and telemetry. */
export function requestInfo(
  { profile, body, context, trace = {} }: ModelRequest,
  requestId: string,
): RequestInfo {
  const { conversationId, turnId, agentId } = context;
  const { parentCorrelationId, requestClass, metadata } = trace;
  const { provider, modelId } = profile;
  const site = { conversationId, turnId, agent: agentId, provider, model: modelId };
  return {
    requestId,
    correlationId: runIdOf(conversationId, turnId),
    ...defined({ parentCorrelationId }),
    attempt: trace.attempt ?? 1,
    agentContext: agentContextOf(site, metadata),
    extensions: extensionsOf(site, { streaming: body.stream !== false, ...defined({ requestClass }) }),
  };
}

/** Passes metrics to the sink without waiting for it. */
export function reportMetrics(sink: MetricsSink | undefined, metrics: RequestMetrics): void {
  if (sink === undefined) return;
  new Promise<void>((resolve) => resolve(sink(metrics))).catch((error: unknown) => console.error(error));
}
