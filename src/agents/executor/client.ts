/** Executors for a conversation: behind a service binding, or in its own process. */

import type { ToolCodes } from "../../library/deployed-code.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ExecutorService, TaskExecutor, ToolState } from "../../protocol/executor-api.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import { readLines } from "./lines.ts";
import { runCalls } from "./run-calls.ts";
import { memoryToolState } from "./tool-state.ts";

/**
 * Returns an executor behind a service binding. Leaving the iteration aborts a second signal, because the other side of an
 * RPC notices a cancelled stream only at its next write. The last result aborts that signal too: a signal that has crossed
 * RPC keeps the caller in memory until it aborts, and the abort has to arrive while the other side exists.
 */
export function serviceExecutor(service: ExecutorService): TaskExecutor {
  return {
    async *run(calls, signal) {
      const waiting = new Set(calls.map(({ operationId }) => operationId));
      if (waiting.size === 0) return;
      const left = new AbortController();
      try {
        const stream = await service.run(calls, AbortSignal.any([signal, left.signal]));
        for await (const report of readLines(stream)) {
          if ("result" in report) waiting.delete(report.operationId);
          if (waiting.size === 0) left.abort();
          yield report;
        }
      } catch (cause) {
        throw lost(waiting, cause);
      } finally {
        left.abort();
      }
      if (waiting.size > 0) throw lost(waiting);
    },
  };
}

/** Returns an executor in this process: the same runner without RPC. `state` keeps the tool state of each conversation. */
export function localExecutor(
  tools: ToolCodes,
  clock: Clock,
  state: (context: CallContext) => ToolState = statePerConversation(),
): TaskExecutor {
  return { run: (calls, signal) => runCalls({ tools, clock, state }, calls, signal) };
}

function lost(waiting: ReadonlySet<string>, cause?: unknown): DramatisError {
  const message = `The connection to the executor was lost before the results of: ${[...waiting].join(", ")}.`;
  return new DramatisError("UNAVAILABLE", message, { retriable: true, cause });
}

function statePerConversation(): (context: CallContext) => ToolState {
  const states = new Map<string, ToolState>();
  return ({ tenant, conversationId }) => {
    const name = `${tenant}:${conversationId}`;
    const state = states.get(name) ?? memoryToolState();
    states.set(name, state);
    return state;
  };
}
