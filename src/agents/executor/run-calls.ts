/**
 * Runs a batch of calls concurrently and reports on each to the batch's caller.
 *
 * BATCH-1  Every call gives exactly one result, and no progress after it.
 * BATCH-2  Calls never wait for each other.
 * BATCH-3  A call that its caller cancels ends within a second. The others continue. If its tool still succeeds within the call's time
 *          limit, the result goes to `deliver`.
 * BATCH-4  Losing the caller stops no call. A caller is lost if it fails a report twice, or accepts no report for 10 seconds. From then on
 *          each result goes to `deliver`, and progress is dropped. If a caller cannot store a result, it is not lost: only that result goes
 *          to `deliver`.
 */
import type { Clock } from "../../ports/clock.ts";
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type {
  AttemptEnd,
  BatchCaller,
  ExecutorReport,
  ToolInvocation,
  ToolResult,
} from "../../protocol/executor-api.ts";
import { ReportQueue } from "./report-queue.ts";
import { runTool, type ToolPorts } from "./run-tool.ts";

export interface BatchPorts extends ToolPorts {
  /** Sends a result to the caller's actor by name, if the caller is lost or has cancelled the call. Never rejects. */
  deliver(call: ToolInvocation, result: AttemptEnd): Promise<void>;
  /** Keeps the executor alive for work beyond the batch. */
  waitUntil(work: Promise<unknown>): void;
}

/** Milliseconds before a batch asks for cancellations. Most batches end earlier and save the request. */
const ASK_AFTER_MS = 250;

/** Timeout of a report, in milliseconds. */
const REPORT_MS = 10_000;
/** Pause before a failed report is repeated, in milliseconds. A live caller ignores repeated results. */
const REPEAT_MS = 250;

/** Runs `calls`. `refused` has the reports on other calls of the batch. Resolves when every result was accepted or delivered. */
export async function runCalls(
  ports: BatchPorts,
  { calls, refused = [] }: { calls: readonly ToolInvocation[]; refused?: readonly ExecutorReport[] },
  caller: BatchCaller,
): Promise<void> {
  const running = new Map(calls.map(({ operationId }) => [operationId, new AbortController()]));
  const deliveries: Promise<void>[] = [];
  let isCallerLost = false;
  const deliver = (reports: readonly ExecutorReport[]) => {
    for (const report of reports) {
      const call = calls.find(({ operationId }) => operationId === report.operationId);
      if (call === undefined || "progress" in report) continue;
      const { operationId: _, ...result } = report;
      deliveries.push(ports.deliver(call, result));
    }
  };
  const queue = new ReportQueue(ports.clock, async (reports) => {
    if (!isCallerLost) {
      try {
        const sending = (signal: AbortSignal) => report(ports.clock, caller, reports, signal);
        const unsaved = await withDeadline(ports.clock, REPORT_MS, sending, {
          reason: unanswered("The caller", REPORT_MS),
        });
        return deliver(reports.filter(({ operationId }) => unsaved.includes(operationId)));
      } catch (error) {
        isCallerLost = true;
        console.warn(
          `The caller of a batch of tools is lost. Its results go to the caller's actor by name. ${error}`,
        );
      }
    }
    deliver(reports);
  });
  for (const report of refused) queue.add(report);
  const stopAsking = askForCancellations(ports.clock, caller, (id) => running.get(id)?.abort());
  let pauses = Promise.resolve();
  /** Waits for all earlier pauses, then for one more. */
  const pause = () => {
    pauses = pauses.then(() => new Promise((resolve) => void ports.clock.timer(0, resolve)));
    return pauses;
  };
  await Promise.all(
    calls.map(async (call, index) => {
      const { operationId } = call;
      // Each task may compute for long without a break, so let others run between.
      if (call.task !== undefined && index > 0) await pause();
      const { signal } = running.get(operationId) ?? new AbortController();
      const ended = await runTool(ports, call, signal, {
        onProgress: (progress) => queue.add({ operationId, progress }),
        onAbandoned: (late) => ports.waitUntil(deliverLate(ports, call, late)),
      });
      queue.add({ operationId, ...ended });
    }),
  );
  stopAsking();
  await queue.end();
  await Promise.all(deliveries);
}

/** Delivers the success of a tool that continued after its cancellation. Never rejects. */
async function deliverLate(
  ports: BatchPorts,
  call: ToolInvocation,
  late: Promise<ToolResult>,
): Promise<void> {
  const result = await withDeadline(ports.clock, call.timeoutMs, () => late).catch(() => undefined);
  if (result !== undefined) await ports.deliver(call, { result });
}

/**
 * Sends reports, and retries once if the request fails or results cannot be stored. Returns the operations with results that the caller
 * still cannot store. Rejects if the retry fails, too.
 */
async function report(
  clock: Pick<Clock, "sleep">,
  caller: BatchCaller,
  reports: ExecutorReport[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const unsaved = await caller.report(reports).catch(() => null);
  if (unsaved?.length === 0) return unsaved;
  await clock.sleep(REPEAT_MS, signal);
  return caller.report(reports);
}

/** Calls `cancel` for each operation that the caller cancels, until the returned function is called. */
function askForCancellations(
  clock: Pick<Clock, "timer">,
  caller: BatchCaller,
  cancel: (operationId: string) => void,
): () => void {
  let isOver = false;
  const ask = async () => {
    while (!isOver) {
      const cancelled = await caller.cancelled();
      if (cancelled.length === 0) return;
      for (const operationId of cancelled) cancel(operationId);
    }
  };
  // Ignore errors here. Reports notice a lost caller.
  const stop = clock.timer(ASK_AFTER_MS, () => void ask().catch(() => undefined));
  return () => {
    isOver = true;
    stop();
  };
}
