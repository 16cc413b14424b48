/** An executor with the faults of a plan, one fault for each call. */
import type { Clock } from "../../ports/clock.ts";
import type {
  BatchCaller,
  ExecutorReport,
  TaskExecutor,
  ToolInvocation,
} from "../../protocol/executor-api.ts";
import { InjectedFault, type PlannedFault } from "../faults.ts";

interface FaultyPorts {
  clock: Pick<Clock, "sleep">;
  isAlive(): boolean;
  next(): PlannedFault | undefined;
  kill(): void;
  /** Runs a call. Its code waits for another run with the same key. */
  held(run: () => Promise<void>): Promise<void>;
  note(call: ToolInvocation, text: string): void;
}

/** Time by which a delayed result misses the time limit of its call, in milliseconds. */
const TOO_LATE_MS = 90_000;

/** Returns an executor that loses, delays and repeats calls and their results. */
export function faultyExecutor(executor: TaskExecutor, ports: FaultyPorts): TaskExecutor {
  return {
    async run(calls, caller) {
      const alive: BatchCaller = {
        report: async (reports) => {
          if (!ports.isAlive()) throw new Error("dead");
          return caller.report(reports);
        },
        cancelled: () => caller.cancelled(),
      };
      const ended = await Promise.allSettled(calls.map((call) => runCall(executor, ports, call, alive)));
      for (const one of ended) if (one.status === "rejected") throw one.reason;
    },
  };
}

async function runCall(
  executor: TaskExecutor,
  ports: FaultyPorts,
  call: ToolInvocation,
  caller: BatchCaller,
): Promise<void> {
  const fault = ports.next();
  if (fault === undefined) return executor.run([call], caller);
  const { kind, when } = fault;
  ports.note(call, `fault: ${kind} ${when} the call.`);
  switch (kind) {
    case "failure":
      return void (await caller.report([failed(call)]));
    case "loss":
      if (when === "after") await executor.run([call], { ...caller, report: async () => [] });
      throw new InjectedFault("The executor was lost.");
    case "crash":
      if (when !== "after") ports.kill();
      if (when === "during") return ports.held(() => executor.run([call], caller));
      return executor.run([call], {
        ...caller,
        report: (reports) => {
          if (endsIn(reports)) ports.kill();
          return caller.report(reports);
        },
      });
    case "delay": {
      const late: Promise<unknown>[] = [];
      await executor.run([call], {
        ...caller,
        report: async (reports) => {
          if (!endsIn(reports)) return caller.report(reports);
          late.push(ports.clock.sleep(call.timeoutMs + TOO_LATE_MS).then(() => caller.report(reports)));
          return [];
        },
      });
      await Promise.allSettled(late);
      return;
    }
    case "duplicate":
      return executor.run([call], {
        ...caller,
        report: async (reports) => {
          await caller.report(structuredClone(reports));
          return caller.report(reports);
        },
      });
    default:
      kind satisfies never;
  }
}

function endsIn(reports: readonly ExecutorReport[]): boolean {
  return reports.some((report) => !("progress" in report));
}

function failed({ operationId, toolCallId }: ToolInvocation): ExecutorReport {
  const error = { code: "EXECUTION_FAILED" as const, message: "The tool failed.", retriable: true };
  return { operationId, result: { tool_call_id: toolCallId, success: false, error }, transient: true };
}
