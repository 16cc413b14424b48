/**
 * Data for telemetry and interceptors. Providers never receive it.
 *
 * RESIL-6  Each logical request is reported once, with any outcome. A failing sink has no effect on the request.
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
import type { CallContext } from "../../shared/identifiers.ts";

/** One attempt of a request, as interceptors and telemetry see it. */
export interface RequestInfo {
  /** Generated; the same for all attempts of one logical request. */
  requestId: string;
  /** `{conversationId}:{turnId}`, or the id of the workflow's run. */
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
  const { parentCorrelationId, requestClass, metadata } = trace;
  const { provider, modelId: model } = profile;
  const caller = callerContext(context, { provider, model });
  return {
    requestId,
    correlationId: caller.runId,
    ...defined({ parentCorrelationId }),
    attempt: trace.attempt ?? 1,
    agentContext: { ...caller, ...defined({ metadata }) },
    extensions: extensionsOf(
      { provider, model },
      { streaming: body.stream !== false, ...defined({ requestClass }) },
    ),
  };
}

/** Describes the caller of a request: a turn, or a run of a workflow, which has no agent. */
function callerContext(
  context: CallContext,
  model: { provider: string; model: string },
): AgentContext & { runId: string } {
  if (context.runId !== undefined) {
    const { runId, node } = context;
    return { runId, labels: { runId, node, ...model } };
  }
  const { conversationId, turnId, agentId } = context;
  const runId = runIdOf(conversationId, turnId);
  return { ...agentContextOf({ conversationId, turnId, agent: agentId, ...model }), runId };
}

/** Passes metrics to the sink without waiting for it. */
export function reportMetrics(sink: MetricsSink | undefined, metrics: RequestMetrics): void {
  if (sink === undefined) return;
  new Promise<void>((resolve) => resolve(sink(metrics))).catch((error: unknown) => console.error(error));
}
