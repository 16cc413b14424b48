/**
 * Queues the reports of a batch to its caller. Every `send` is a subrequest, so reports are combined.
 *
 * REPORT-1  Reports arrive in order, and a `send` starts only after the previous `send` has ended.
 * REPORT-2  A result is sent at once, with the results that arrive in the same moment. Progress is sent at most every 100 ms, and less
 *           often the longer the batch runs: a few hundred times in 15 minutes. Only the newest progress of each operation waits.
 * REPORT-3  One `send` carries at most about 4 MiB, or 8 reports, far below the platform's limit for one message.
 */
import type { Clock } from "../../ports/clock.ts";
import type { ExecutorReport } from "../../protocol/executor-api.ts";

/** Shortest pause between two progress reports, in milliseconds. */
const MIN_PAUSE_MS = 100;
/** The pause between two progress reports, as a share of the batch's age. */
const PAUSE_SHARE = 1 / 50;
/** Reports that are sent together without measuring. Each has at most about 1 MiB. */
const MAX_UNMEASURED = 8;
/** Maximum JSON length of one `send` with more reports. */
const MAX_LENGTH = 4 * 1024 * 1024;

export class ReportQueue {
  readonly #queue: ExecutorReport[] = [];
  readonly #startedAt: number;
  #lastSentAt = Number.NEGATIVE_INFINITY;
  #sending: Promise<void> | null = null;
  /** The next `send`, if it is planned. */
  #planned: { due: number; cancel: () => void } | null = null;

  /** `send` must not reject. */
  constructor(
    private readonly clock: Pick<Clock, "now" | "timer">,
    private readonly send: (reports: ExecutorReport[]) => Promise<void>,
  ) {
    this.#startedAt = clock.now();
  }

  add(report: ExecutorReport): void {
    const older = "progress" in report ? this.#progressOf(report.operationId) : -1;
    if (older !== -1) this.#queue.splice(older, 1);
    this.#queue.push(report);
    this.#plan();
  }

  /** Sends the rest now. Resolves when it was sent. */
  async end(): Promise<void> {
    while (this.#queue.length > 0 || this.#sending !== null) await (this.#sending ?? this.#sendNext());
  }

  #progressOf(id: string): number {
    return this.#queue.findIndex((report) => report.operationId === id && "progress" in report);
  }

  #plan(): void {
    if (this.#sending !== null || this.#queue.length === 0) return;
    const now = this.clock.now();
    const hasResult = this.#queue.some((report) => !("progress" in report));
    const pause = Math.max(MIN_PAUSE_MS, (now - this.#startedAt) * PAUSE_SHARE);
    const due = hasResult ? now : Math.max(now, this.#lastSentAt + pause);
    if (this.#planned !== null && this.#planned.due <= due) return;
    this.#planned?.cancel();
    this.#planned = { due, cancel: this.clock.timer(due - now, () => void this.#sendNext()) };
  }

  #sendNext(): Promise<void> {
    this.#planned?.cancel();
    this.#planned = null;
    this.#lastSentAt = this.clock.now();
    this.#sending = this.send(this.#take()).finally(() => {
      this.#sending = null;
      this.#plan();
    });
    return this.#sending;
  }

  #take(): ExecutorReport[] {
    const queue = this.#queue;
    if (queue.length <= MAX_UNMEASURED) return queue.splice(0);
    let length = 0;
    const end = queue.findIndex((report, index) => {
      length += JSON.stringify(report).length;
      return index > 0 && length > MAX_LENGTH;
    });
    return queue.splice(0, end === -1 ? queue.length : end);
  }
}
