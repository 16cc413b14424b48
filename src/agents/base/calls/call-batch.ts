/**
 * Calls of one actor that run in one call of the Executor. The batch converts the Executor's reports into ends of calls. It is independent
 * of turns and runs.
 *
 * BATCH-5  Each call of a batch ends on its own: with its result, or with its abort. The Executor cancels an aborted call, and the call has
 *          no result. A `once` call may still succeed before its cancellation is sent. Its result is rejected as not stored, so the
 *          Executor delivers it by name (BATCH-3).
 * BATCH-6  If the Executor is lost, or is silent for 30 seconds beyond the time limit of a call, the call fails with `INTERNAL_ERROR`. The
 *          outcome of a `once` tool is then unknown.
 * BATCH-7  If the Executor cannot be reached, or a call cannot be built, all calls of the batch fail as not run, whatever their effect.
 */
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import type { ToolEffect } from "../../../protocol/definition-parts.ts";
import type {
  AttemptEnd,
  BatchCaller,
  TaskExecutor,
  ToolInvocation,
  ToolResult,
} from "../../../protocol/executor-api.ts";
import { reportsSchema } from "../../../protocol/executor-api.ts";
import { type DramatisError, unavailable } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { validate } from "../../../shared/validation.ts";

/** The members of a call that its end needs, even if the rest of the call cannot be built. */
type CallKey = Pick<ToolInvocation, "operationId" | "attempt" | "toolCallId">;

export interface BatchCall extends CallKey {
  name: string;
  effect: ToolEffect;
  /** Builds the rest of the call when the batch runs. If it throws, no call of the batch runs (BATCH-7). */
  invocation(): Omit<ToolInvocation, keyof CallKey>;
}

export interface CallEnd {
  operationId: string;
  attempt: number;
  end: AttemptEnd;
  /** The Executor was lost, or silent for too long (BATCH-6). */
  lost?: true;
}

export interface BatchListener {
  /**
   * Takes the ends that arrived together. Returns true if they are stored, so the Executor need not deliver them by name. An end that is
   * not stored may arrive again, as the same object.
   */
  onEnds(ends: [CallEnd, ...CallEnd[]]): boolean;
  onProgress(operationId: string, progress: Json): void;
}

/** Milliseconds beyond the time limit of a call after which it counts as lost. */
const MARGIN_MS = 30_000;

interface Followed {
  call: BatchCall;
  end(): void;
}

/**
 * Runs calls together. Follow each call, then run the batch.
 *
 * @example
 * const batch = new CallBatch({ onEnds: (ends) => store(ends), onProgress: () => undefined });
 * const followed = batch.follow(call, signal);
 * void batch.run(executor, clock, clock.now());
 * await followed;
 */
export class CallBatch {
  readonly #waiting = new Map<string, Followed>();
  /** Ends that could not be stored yet. */
  readonly #unsaved = new Map<string, CallEnd>();
  readonly #cancelled: string[] = [];
  /** Calls that were aborted. Their results may arrive before their cancellation has left. */
  readonly #aborted = new Map<string, BatchCall>();
  /** Aborts once no call waits: the pause before an attempt ends with the call. */
  readonly #idle = new AbortController();
  /** Answers the Executor's pending request for cancelled calls. */
  #answer: (() => void) | null = null;

  constructor(private readonly listener: BatchListener) {}

  /** Adds a call, before `run`. Resolves when the call has a result or is aborted. */
  follow(call: BatchCall, signal: AbortSignal): Promise<void> {
    const { operationId: id } = call;
    return new Promise((end) => {
      this.#waiting.set(id, { call, end });
      signal.addEventListener("abort", () => this.#cancel(id), { once: true });
    });
  }

  /** Runs the calls, at `startAt` (milliseconds since the epoch) or now. Resolves when all have ended. Never throws. */
  async run(executor: TaskExecutor, clock: Clock, startAt: number): Promise<void> {
    const delay = startAt - clock.now();
    if (delay > 0) await clock.sleep(delay, this.#idle.signal).catch(() => undefined);
    if (this.#waiting.size === 0) return;
    const caller: BatchCaller = {
      report: async (reports) => this.#take(reports),
      cancelled: () => this.#nextCancelled(),
    };
    let calls: ToolInvocation[];
    let running: Promise<void>;
    try {
      calls = [...this.#waiting.values()].map(({ call }) => invocationOf(call));
      running = executor.run(calls, caller);
    } catch (error) {
      console.error(error);
      this.#fail([...this.#waiting.keys()], notRun);
      return;
    }
    const byLimit = Map.groupBy(calls, ({ timeoutMs }) => timeoutMs + MARGIN_MS);
    await Promise.all([...byLimit].map(([limit, group]) => this.#await(running, group, clock, limit)));
  }

  /** Waits for the results of `calls` until the Executor ends or the limit expires. Then fails the calls without a result. */
  async #await(
    running: Promise<void>,
    calls: readonly ToolInvocation[],
    clock: Clock,
    limit: number,
  ): Promise<void> {
    const open = () => calls.map((call) => call.operationId).filter((id) => this.#waiting.has(id));
    try {
      await withDeadline(clock, limit, () => running, {
        reason: () => lost(open(), `did not answer within ${limit} ms to`),
      });
      if (open().length > 0) console.error(lost(open(), "ended without the results of"));
    } catch (error) {
      if (open().length > 0) console.error(error);
    }
    this.#fail(open(), lostResult);
  }

  #fail(ids: readonly string[], resultOf: (call: BatchCall) => ToolResult): void {
    const ends = ids.flatMap((id) => {
      const call = this.#waiting.get(id)?.call;
      if (call === undefined) return [];
      const ended = this.#settle(call, { result: resultOf(call), transient: true });
      return [resultOf === lostResult ? { ...ended, lost: true as const } : ended];
    });
    if (this.#waiting.size === 0) this.#answer?.();
    this.#report(ends);
  }

  /** Returns the calls whose results cannot be stored now. Throws `INVALID_INPUT` for reports that are not valid. */
  #take(reports: unknown): string[] {
    const ends = new Map<string, CallEnd>();
    try {
      for (const report of validate(reportsSchema, reports, "", "The report")) {
        const { operationId: id } = report;
        const unsaved = this.#unsaved.get(id);
        const waiting = this.#waiting.get(id)?.call;
        if (unsaved !== undefined) ends.set(id, unsaved);
        else if ("progress" in report) {
          if (waiting !== undefined) this.listener.onProgress(id, report.progress);
        } else {
          const call = waiting ?? this.#aborted.get(id);
          const { operationId: _, ...end } = report;
          if (call !== undefined) ends.set(id, this.#settle(call, end));
        }
      }
    } finally {
      // A settled call takes no second report, so its result counts even if a later progress fails.
      if (this.#waiting.size === 0) this.#answer?.();
      const isStored = this.#report([...ends.values()]);
      for (const [id, end] of ends) {
        if (isStored) this.#unsaved.delete(id);
        else this.#unsaved.set(id, end);
        // A stored report may arrive again. Ignore it.
        if (isStored) this.#aborted.delete(id);
      }
    }
    return [...ends.keys()].filter((id) => this.#unsaved.has(id));
  }

  #report([first, ...others]: CallEnd[]): boolean {
    return first === undefined || this.listener.onEnds([first, ...others]);
  }

  #settle({ operationId, attempt }: BatchCall, end: AttemptEnd): CallEnd {
    this.#end(operationId);
    return { operationId, attempt, end };
  }

  #end(id: string): void {
    this.#waiting.get(id)?.end();
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#idle.abort();
  }

  #cancel(id: string): void {
    const followed = this.#waiting.get(id);
    if (followed === undefined) return;
    this.#aborted.set(id, followed.call);
    this.#end(id);
    this.#cancelled.push(id);
    this.#answer?.();
  }

  /** Resolves with the calls cancelled since the last request. Resolves with an empty list when the batch is over. */
  async #nextCancelled(): Promise<string[]> {
    if (this.#cancelled.length === 0 && this.#waiting.size > 0)
      await new Promise<void>((resolve) => (this.#answer = resolve));
    return this.#cancelled.splice(0);
  }
}

function invocationOf({ operationId, attempt, toolCallId, invocation }: BatchCall): ToolInvocation {
  return { operationId, attempt, toolCallId, ...invocation() };
}

function notRun({ toolCallId, name }: BatchCall): ToolResult {
  return failed(toolCallId, `"${name}" did not run: its executor cannot be reached.`, true);
}

function lostResult({ toolCallId, name, effect }: BatchCall): ToolResult {
  const isUnknown = effect === "once";
  const message = isUnknown
    ? `Outcome unknown: the connection to "${name}" was lost and it may have taken effect.`
    : `The run of "${name}" was lost.`;
  return failed(toolCallId, message, !isUnknown);
}

function failed(toolCallId: string, message: string, retriable: boolean): ToolResult {
  return { tool_call_id: toolCallId, success: false, error: { code: "INTERNAL_ERROR", message, retriable } };
}

function lost(ids: Iterable<string>, how: string): DramatisError {
  const message = `The executor ${how}: ${[...ids].join(", ")}.`;
  return unavailable(message, { retriable: true });
}
