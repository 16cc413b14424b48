/** Reports the ends of work after each commit of a conversation: metrics of model calls, spans, and lines of the log. */
import { reportMetrics } from "../../../adapters/resilience/telemetry.ts";
import type { Span } from "../../../model/span.ts";
import type { RuntimeContext } from "../context.ts";
import { endedSpans, summarySpan } from "../core/spans.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { type TracedTurn, traceOf } from "../core/trace.ts";
import type { Transition } from "../core/transition.ts";
import type { Turn } from "../core/turn.ts";
import { metricsOfClosedCalls, metricsOfSummary } from "./call-metrics.ts";
import type { CompactedTurn } from "./model-call.ts";

export class Reports {
  constructor(
    private readonly context: Pick<RuntimeContext, "metrics" | "spans" | "log">,
    /** Returns the turn that began a compaction when it ended. */
    private readonly compactedTurn: (n: number) => CompactedTurn,
  ) {}

  /** Reports a commit; `active` are the active turns before it. */
  report(
    record: ConversationIdentity,
    active: ReadonlyMap<number, Turn>,
    { touched, summaries }: Pick<Transition, "touched" | "summaries">,
  ): void {
    const { metrics, spans, log } = this.context;
    if (metrics === undefined && spans === undefined && log === undefined) return;
    const ended: Span[] = [];
    const sampled: Span[] = [];
    const add = (turn: TracedTurn, found: readonly Span[]) => {
      ended.push(...found);
      if (traceOf(turn).isSampled) sampled.push(...found);
    };
    for (const turn of touched.values()) {
      const before = active.get(turn.n);
      for (const one of metricsOfClosedCalls(record, before, turn)) reportMetrics(metrics, one);
      add(turn, endedSpans(record, before, turn));
    }
    for (const { turn: n, record: call } of summaries) {
      const turn = this.compactedTurn(n);
      for (const one of metricsOfSummary(record, turn, call)) reportMetrics(metrics, one);
      add(turn, summarySpan(record, turn, call));
    }
    if (sampled.length > 0) spans?.(sampled);
    log?.(ended);
  }
}
