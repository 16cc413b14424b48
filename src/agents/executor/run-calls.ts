/**
 * Runs a batch of calls at once and reports on each to the batch's caller.
 *
 * BATCH-1  Every call gives exactly one result, and no progress after it.
 * BATCH-2  No call waits for another.
 * BATCH-3  A call that its caller cancels ends within a second; the others go on. If its tool succeeds all the same, within
 *          the call's time limit, the result goes to `deliver`.
 * BATCH-4  A caller that is lost stops no call: one that fails a report twice, or takes none for 10 seconds. From then on
 *          each result goes to `deliver`, and progress is dropped. One that cannot store a result is not lost: that
 *          result goes to `deliver`.
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
  /** Sends a result to the caller's actor by name: when the caller is lost, or has cancelled the call. Never rejects. */
  deliver(call: ToolInvocation, result: AttemptEnd): Promise<void>;
  /** Keeps the executor alive for work beyond the batch. */
  waitUntil(work: Promise<unknown>): void;
}

/** Milliseconds before a batch asks for cancellations: most are over by then, and save the request. */
const ASK_AFTER_MS = 250;

/** Milliseconds in which a caller must take a report. */
const REPORT_MS = 10_000;
/** Milliseconds before a report that failed is sent again. A caller that is alive ignores results that it took before. */
const REPEAT_MS = 250;

/** Runs `calls`; `refused` are reports on other calls of the batch. Resolves when every result was taken or delivered. */
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
          `A batch of tools has lost its caller. Its results go to the caller's actor by name. ${error}`,
        );
      }
    }
    deliver(reports);
  });
  for (const report of refused) queue.add(report);
  const stopAsking = askForCancellations(ports.clock, caller, (id) => running.get(id)?.abort());
  let pauses = Promise.resolve();
  /** Waits for the pauses before, and for one more. */
  const pause = () => {
    pauses = pauses.then(() => new Promise((resolve) => void ports.clock.timer(0, resolve)));
    return pauses;
  };
  await Promise.all(
    calls.map(async (call, index) => {
      const { operationId } = call;
      // Each task may compute for long at once: others come between.
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

/** Delivers the success of a tool that goes on after its cancellation. Never rejects. */
async function deliverLate(
  ports: BatchPorts,
  call: ToolInvocation,
  late: Promise<ToolResult>,
): Promise<void> {
  const result = await withDeadline(ports.clock, call.timeoutMs, () => late).catch(() => undefined);
  if (result !== undefined) await ports.deliver(call, { result });
}

/**
 * Sends reports, a second time if the first fails or its results cannot be stored. Returns the operations whose results the
 * caller still cannot store; rejects if the second fails, too.
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

/** Calls `cancel` with each operation that the caller cancels, until the returned function is called. */
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
  // A caller that is lost cancels nothing. Reports notice that it is.
  const stop = clock.timer(ASK_AFTER_MS, () => void ask().catch(() => undefined));
  return () => {
    isOver = true;
    stop();
  };
}
