/** Reports of what commits of a conversation ended: metrics of model calls, and spans. Both are made after the commit. */
import { type MetricsSink, reportMetrics } from "../../../adapters/resilience/telemetry.ts";
import type { Span } from "../../../model/span.ts";
import { endedSpans, summarySpan } from "../core/spans.ts";
import type { ConversationIdentity } from "../core/state.ts";
import type { Transition } from "../core/transition.ts";
import type { Turn } from "../core/turn.ts";
import { metricsOfClosedCalls, metricsOfSummary } from "./call-metrics.ts";
import type { CompactedTurn } from "./model-call.ts";

export interface ReportPorts {
  /** Receives the metrics of every model call that is over. */
  metrics?: MetricsSink;
  /** Receives the spans that a commit has ended. */
  spans?: (spans: readonly Span[]) => void;
}

export class Reports {
  constructor(
    private readonly ports: ReportPorts,
    /** Returns the turn whose end began a compaction. */
    private readonly compactedTurn: (n: number) => CompactedTurn,
  ) {}

  /** Reports a commit; `active` are the active turns before it. */
  report(
    record: ConversationIdentity,
    active: ReadonlyMap<number, Turn>,
    { touched, summaries }: Pick<Transition, "touched" | "summaries">,
  ): void {
    const { metrics, spans } = this.ports;
    if (metrics === undefined && spans === undefined) return;
    const ended: Span[] = [];
    for (const turn of touched.values()) {
      const before = active.get(turn.n);
      for (const one of metricsOfClosedCalls(record, before, turn)) reportMetrics(metrics, one);
      if (spans !== undefined) ended.push(...endedSpans(record, before, turn));
    }
    for (const { turn: n, record: call } of summaries) {
      const turn = this.compactedTurn(n);
      for (const one of metricsOfSummary(record, turn, call)) reportMetrics(metrics, one);
      if (spans !== undefined) ended.push(...summarySpan(record, turn, call));
    }
    if (ended.length > 0) spans?.(ended);
  }
}
