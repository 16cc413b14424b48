/**
 * The `Executor` entrypoint: stateless, reached by RPC. It runs batches of tool calls and reports results to the caller. If the caller
 * stops, the results go to the caller's actor by name.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { Artifacts } from "../../artifacts/artifacts.ts";
import { ResultKeeper } from "../../attachments/result-keeper.ts";
import type { ToolCodes } from "../../library/registry/deployed-code.ts";
import type { Clock } from "../../ports/clock.ts";
import { type CallerApi, callerOf } from "../../protocol/caller.ts";
import type { BatchCaller, ErasedCallApi, TaskExecutor } from "../../protocol/executor-api.ts";
import type { MemoryApi } from "../../protocol/memory.ts";
import type { PastTurnsApi } from "../../protocol/tool-memory.ts";
import type { WorkspaceApi } from "../../protocol/workspace.ts";
import { unwrap } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import type { Application } from "../base/application.ts";
import { durableActor } from "../base/lookup/durable-actors.ts";
import { artifactsFor } from "./artifacts.ts";
import { readCalls } from "./calls.ts";
import { deliverResult } from "./deliver.ts";
import { memoryFor } from "./memory.ts";
import { runCalls } from "./run-calls.ts";
import type { ToolPorts } from "./run-tool.ts";
import type { ActionPorts } from "./steps/run-action.ts";
import { storedResults } from "./stored-results.ts";
import { callerToolState } from "./tool-state.ts";
import { workspaceFor } from "./workspace.ts";

/** Pause before a conversation that did not answer is asked again, in milliseconds. */
const ASK_AGAIN_MS = 1_000;

export interface ExecutorApplication
  extends Pick<Application, "attachments" | "maxAttachmentBytes">,
    Pick<ActionPorts, "mayReach" | "resolve" | "credentials" | "models" | "vectors">,
    Pick<ToolPorts, "mcp" | "remoteAgent"> {
  tools: ToolCodes;
  clock: Clock;
  /** Throws `UNAVAILABLE` if a binding is missing. */
  artifacts(): Artifacts;
  /** The address of the Worker, if it is known. */
  baseUrl: string | undefined;
}

export function createExecutorClass<Env>(
  application: (env: Env) => ExecutorApplication,
): new (
  ...arguments_: ConstructorParameters<typeof WorkerEntrypoint<Env>>
) => WorkerEntrypoint<Env> & TaskExecutor {
  return class Executor extends WorkerEntrypoint<Env> implements TaskExecutor {
    async run(calls: unknown, caller: BatchCaller): Promise<void> {
      const { attachments, maxAttachmentBytes, artifacts, ...given } = application(this.env);
      const { clock } = given;
      const batch = readCalls(calls);
      // A batch without calls asks whether the settings are usable.
      if (batch.calls.length === 0) given.models?.();
      const connect = (context: CallContext) =>
        durableActor<CallerApi>(this.env as object, callerOf(context));
      const work = runCalls(
        {
          ...given,
          results: storedResults(
            new ResultKeeper(attachments, maxAttachmentBytes, clock),
            async ({ context, operationId }) => {
              const ask = async () =>
                (await durableActor<ErasedCallApi>(this.env as object, callerOf(context))).isErased(
                  operationId,
                );
              // The actor may be restarting. If it stays unreachable, the result is kept.
              const retry = () => clock.sleep(ASK_AGAIN_MS).then(ask);
              const answer = await ask()
                .catch(retry)
                .catch(() => null);
              return answer?.ok === false ? answer.error.code === "NOT_FOUND" : answer?.value === true;
            },
          ),
          defer: async ({ operationId, attempt, context }, options) =>
            unwrap(await (await connect(context)).deferOperation({ operationId, attempt, ...options })),
          state: (context) => callerToolState(() => connect(context)),
          memory: (call, taint) =>
            memoryFor(
              {
                agent: (tenant, id) =>
                  durableActor<MemoryApi>(this.env as object, { kind: "agent", tenant, id }, "UNAVAILABLE"),
                pastTurns: async (context, request) =>
                  (await durableActor<PastTurnsApi>(this.env as object, callerOf(context))).pastTurns(
                    request,
                  ),
              },
              call,
              taint,
            ),
          artifacts: (call, taint) => artifactsFor(artifacts, call, taint),
          workspace: (call, signal, taint) =>
            workspaceFor(
              (tenant, id) =>
                durableActor<WorkspaceApi>(
                  this.env as object,
                  { kind: "workspace", tenant, id },
                  "UNAVAILABLE",
                ),
              call,
              signal,
              taint,
            ),
          deliver: ({ operationId, attempt, context }, result) =>
            deliverResult(clock, () => connect(context), { operationId, attempt, ...result }),
          waitUntil: (more) => this.ctx.waitUntil(more),
        },
        batch,
        caller,
      );
      // The platform cancels a call if its caller stops, but not this work.
      this.ctx.waitUntil(work);
      await work;
    }
  };
}
