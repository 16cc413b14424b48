/** The two ways a conversation reaches an executor: over a service binding, or in its own process. */

import type { ToolCodes } from "../../library/deployed-code.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ToolState } from "../../protocol/tool-state.ts";
import type { CallContext } from "../../shared/call-context.ts";
import { DramatisError } from "../../shared/errors.ts";
import { readLines } from "./lines.ts";
import { runCalls } from "./run-calls.ts";
import { memoryToolState } from "./tool-state.ts";
import type { TaskExecutor, ToolInvocation } from "./types.ts";

/** The executor's RPC face, as a service binding offers it. */
export interface ExecutorService {
  run(calls: ToolInvocation[], signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/**
 * An executor behind a service binding. Leaving the iteration aborts a signal beside the caller's: over RPC a cancelled
 * stream is noticed on the other side only when it next writes. The last result aborts it too, though nothing is left to
 * cancel: a signal that has crossed RPC holds the caller in memory until it aborts, and the other side must still be
 * there to hear of it.
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

/** An executor in this process: the same runner without RPC. `state` keeps the facts of each conversation. */
export function localExecutor(
  tools: ToolCodes,
  clock: Clock,
  state: (context: CallContext) => ToolState = statePerConversation(),
): TaskExecutor {
  return { run: (calls, signal) => runCalls({ tools, clock, state }, calls, signal) };
}

function lost(waiting: ReadonlySet<string>, cause?: unknown): DramatisError {
  const message = `The executor was lost before it reported on: ${[...waiting].join(", ")}.`;
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
