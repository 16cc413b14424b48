/** Sends the spans of a run to the exporter and the log, after the commit that ended them. */
import { SpanQueue } from "../../../adapters/telemetry/span-queue.ts";
import type { ActorContext } from "../context.ts";
import { endedSpans, type SpannedRow } from "../core/spans.ts";
import type { RunState } from "../core/state.ts";
import { traceOf } from "../core/trace.ts";

export class RunTelemetry {
  readonly #queue: SpanQueue | undefined;

  constructor(private readonly context: Pick<ActorContext, "exporter" | "log" | "clock" | "waitUntil">) {
    const { exporter, clock, waitUntil } = context;
    this.#queue = exporter && new SpanQueue(clock, exporter, waitUntil);
  }

  /** Takes a commit; `before` is the state before it. */
  ended(before: RunState, row: SpannedRow): void {
    const { log } = this.context;
    if (this.#queue === undefined && log === undefined) return;
    const spans = endedSpans(before, row);
    if (spans.length === 0) return;
    if (traceOf(before.record).isSampled) this.#queue?.add(spans);
    log?.(spans);
  }
}
