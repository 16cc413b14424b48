/** Sends the spans of a run to the exporter and the log, after the commit that ended them. */
import { SpanQueue } from "../../../adapters/telemetry/span-queue.ts";
import type { Span, SpanExporter } from "../../../model/span.ts";
import type { Clock } from "../../../ports/clock.ts";
import { endedSpans, type SpannedRow } from "../core/spans.ts";
import type { RunState } from "../core/state.ts";
import { traceOf } from "../core/trace.ts";

export class RunTelemetry {
  readonly #queue: SpanQueue | undefined;

  constructor(
    exporter: SpanExporter | undefined,
    private readonly log: ((spans: readonly Span[]) => void) | undefined,
    clock: Pick<Clock, "timer">,
    waitUntil: (work: Promise<void>) => void,
  ) {
    this.#queue = exporter && new SpanQueue(clock, exporter, waitUntil);
  }

  /** Takes a commit; `before` is the state before it. */
  ended(before: RunState, row: SpannedRow): void {
    if (this.#queue === undefined && this.log === undefined) return;
    const spans = endedSpans(before, row);
    if (spans.length === 0) return;
    if (traceOf(before.record).isSampled) this.#queue?.add(spans);
    this.log?.(spans);
  }
}
