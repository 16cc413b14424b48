/**
 * The `Executor` entrypoint: stateless, behind a service binding. It runs batches of tool calls and streams a report on each
 * as it proceeds, one JSON text per line.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { ToolCodes } from "../../library/deployed-code.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ExecutorReport, ExecutorService, ToolStateApi } from "../../protocol/executor-api.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import { durableActor } from "../base/lookup/durable-actors.ts";
import { readCalls } from "./calls.ts";
import { writeLines } from "./lines.ts";
import { runCalls } from "./run-calls.ts";
import { conversationToolState } from "./tool-state.ts";

/** Returns the class `Executor` of an application, for the tools that are deployed with it. */
export function createExecutorClass<Env>(
  tools: ToolCodes,
  clock: Clock,
): new (
  ...arguments_: ConstructorParameters<typeof WorkerEntrypoint<Env>>
) => WorkerEntrypoint<Env> & ExecutorService {
  return class Executor extends WorkerEntrypoint<Env> implements ExecutorService {
    async run(calls: unknown, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
      const batch = readCalls(calls);
      const state = ({ tenant, conversationId: id }: CallContext) =>
        conversationToolState(() =>
          durableActor<ToolStateApi>(this.env as object, { kind: "conversation", tenant, id }),
        );
      return writeLines(async function* (cancelled): AsyncGenerator<ExecutorReport, void> {
        yield* batch.refused;
        yield* runCalls({ tools, clock, state }, batch.calls, AbortSignal.any([signal, cancelled]));
      });
    }
  };
}
