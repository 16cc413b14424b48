/**
 * The `Executor` entrypoint: stateless, reached by a service binding. It runs batches of tool calls and answers a
 * stream of bytes, one JSON text a line, as each call gets there.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import { getAgentByName } from "agents";
import type { ToolCodes } from "../../library/deployed-code.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ToolStateApi } from "../../protocol/tool-state.ts";
import type { CallContext } from "../../shared/call-context.ts";
import { readCalls } from "./calls.ts";
import { writeLines } from "./lines.ts";
import { runCalls } from "./run-calls.ts";
import { conversationToolState } from "./tool-state.ts";
import type { ExecutorReport } from "./types.ts";

/** The bindings an `Executor` uses. */
export interface ExecutorEnv {
  Conversation: Parameters<typeof getAgentByName>[0];
}

export interface ExecutorApi {
  /**
   * Runs all calls at once. A call that is not valid is answered by its result; what is no batch of calls rejects
   * with `INVALID_INPUT`. Aborting `signal` cancels the calls that still run, cancelling the stream does too.
   */
  run(calls: unknown, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** The class `Executor` of an application, over the tools that are deployed with it. */
export function createExecutorClass(
  tools: ToolCodes,
  clock: Clock,
): new (
  ...arguments_: ConstructorParameters<typeof WorkerEntrypoint<ExecutorEnv>>
) => WorkerEntrypoint<ExecutorEnv> & ExecutorApi {
  return class Executor extends WorkerEntrypoint<ExecutorEnv> implements ExecutorApi {
    async run(calls: unknown, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
      const batch = readCalls(calls);
      const state = (context: CallContext) => conversationToolState(() => conversation(this.env, context));
      return writeLines(async function* (cancelled): AsyncGenerator<ExecutorReport, void> {
        yield* batch.refused;
        yield* runCalls({ tools, clock, state }, batch.calls, AbortSignal.any([signal, cancelled]));
      });
    }
  };
}

async function conversation(
  env: ExecutorEnv,
  { tenant, conversationId }: CallContext,
): Promise<ToolStateApi> {
  const stub: unknown = await getAgentByName(env.Conversation, `${tenant}:${conversationId}`);
  // SAFETY: the binding's class is `Conversation`, which implements `ToolStateApi`; results are checked where they are used.
  return stub as ToolStateApi;
}
