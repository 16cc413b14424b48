/**
 * Queues the spans of one actor for their export.
 *
 * SPANOUT-1  Other work never waits for an export and is unaffected by its failures, even if an exporter throws, hangs or is slow. An
 *            export ends after `EXPORT_TIMEOUT_MS`. Then its spans are lost, and the log reports the loss.
 * SPANOUT-2  One export runs at a time. Spans that arrive during an export form the next batch. Beyond `MAX_WAITING_SPANS` the oldest are
 *            lost.
 */
import type { Span, SpanExporter } from "../../model/span.ts";
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";

/** Time limit of one export, in milliseconds. */
export const EXPORT_TIMEOUT_MS = 10_000;

export const MAX_BATCH_SPANS = 256;

/** Spans of an actor that wait for their export. */
export const MAX_WAITING_SPANS = 1024;

export class SpanQueue {
  #waiting: Span[] = [];
  #isRunning = false;

  constructor(
    private readonly clock: Pick<Clock, "timer">,
    private readonly exporter: SpanExporter,
    private readonly waitUntil: (work: Promise<void>) => void,
  ) {}

  /** Exports spans, now or after the export that runs. */
  readonly add = (spans: readonly Span[]): void => {
    this.#waiting.push(...spans);
    const lost = this.#waiting.length - MAX_WAITING_SPANS;
    if (lost > 0) {
      this.#waiting.splice(0, lost);
      console.warn(`${lost} spans were lost: the exporter is slower than the conversation.`);
    }
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.waitUntil(this.#run());
  };

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH_SPANS);
      try {
        await withDeadline(this.clock, EXPORT_TIMEOUT_MS, async (signal) =>
          this.exporter.export(batch, signal),
        );
      } catch (error) {
        console.error(`${batch.length} spans were not exported.`, error);
      }
    }
    this.#isRunning = false;
  }
}
