/**
 * Runs a batch of calls at once and yields their reports as they arrive.
 *
 * BATCH-1  Every call yields exactly one result, and no progress after it.
 * BATCH-2  No call waits for another.
 */

import type { ExecutorReport, ToolInvocation } from "../../protocol/executor-api.ts";
import { runTool, type ToolPorts } from "./run-tool.ts";

/** Starts every call at the first `next`. Leaving the iteration aborts the calls that still run. */
export async function* runCalls(
  ports: ToolPorts,
  calls: readonly ToolInvocation[],
  signal: AbortSignal,
): AsyncGenerator<ExecutorReport, void> {
  const left = new AbortController();
  const either = AbortSignal.any([signal, left.signal]);
  const reports: ExecutorReport[] = [];
  let wake = () => {};
  const report = (one: ExecutorReport) => {
    reports.push(one);
    wake();
  };
  for (const call of calls) {
    const { operationId } = call;
    void runTool(ports, call, either, (progress) => report({ operationId, progress })).then((result) =>
      report({ operationId, result }),
    );
  }
  try {
    for (let running = calls.length; running > 0; ) {
      if (reports.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      for (const one of reports.splice(0)) {
        if ("result" in one) running -= 1;
        yield one;
      }
    }
  } finally {
    left.abort();
  }
}
