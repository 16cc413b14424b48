/**
 * What is measured of model calls.
 *
 * RESIL-6  A logical request is reported once, whatever became of it, and a sink that fails changes nothing.
 */
import type { RequestOutcome } from "../../model/call-record.ts";
import type { TokenUsage } from "../../model/usage.ts";
import type { RequestInfo } from "./request-info.ts";

/** One logical request, with all of its attempts. */
export interface RequestMetrics {
  /** `{client}.{operation}`. */
  span: string;
  outcome: RequestOutcome;
  /** Of its last attempt. */
  info: RequestInfo;
  usage?: TokenUsage;
  /** US dollars. */
  cost?: number;
}

export type MetricsSink = (metrics: RequestMetrics) => void | Promise<void>;

/** Gives the metrics to the sink and does not wait for it. */
export function reportMetrics(sink: MetricsSink | undefined, metrics: RequestMetrics): void {
  if (sink === undefined) return;
  new Promise<void>((resolve) => resolve(sink(metrics))).catch((error: unknown) => console.error(error));
}
