/** The executor of a test world: the code of the application, its deferred results, and its tool state. */
import { adapterFor } from "../../adapters/formats/lookup.ts";
import { cannotDefer } from "../../agents/coordinator/inbound/start-run.ts";
import { artifactsFor } from "../../agents/executor/artifacts.ts";
import { deliverResult } from "../../agents/executor/deliver.ts";
import { callerToolState } from "../../agents/executor/tool-state.ts";
import { workspaceFor } from "../../agents/executor/workspace.ts";
import type { DeployedCode, ToolCodes } from "../../library/registry/deployed-code.ts";
import type { DeferOptions } from "../../library/tools/deferred.ts";
import type { ModelGateway } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { Clock } from "../../ports/clock.ts";
import type { VersionChain } from "../../protocol/definitions.ts";
import type { TaskExecutor, TaskResult, ToolInvocation, ToolStateApi } from "../../protocol/executor-api.ts";
import type { GivenHandle } from "../../protocol/operation-handle.ts";
import { asDone, asResult, notFound } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import type { FaultPlane } from "../faults.ts";
import type { ConversationActor, RunActor } from "./actors.ts";
import { faultyExecutor } from "./faulty-executor.ts";
import { localExecutor } from "./local-executor.ts";
import type { MortalLife } from "./mortal-actor.ts";
import { type HttpAnswer, scriptedHttp } from "./scripted-http.ts";
import { answerRemote, callDouble, type McpDoubles, type RemoteAnswer } from "./scripted-servers.ts";
import { EffectRecorder, type RecordedWorld, recordedTools, type ToolRun } from "./tool-runs.ts";
import { inRuntime } from "./user-code.ts";
import type { WorldFiles } from "./world-files.ts";

interface ToolsWorld extends RecordedWorld {
  readonly clock: Clock;
  readonly faults: FaultPlane;
  readonly files: WorldFiles;
  conversation(id: string): ConversationActor;
  run(id: string): RunActor;
}

interface ToolsParts {
  gateway: ModelGateway;
  defaultProfile: ModelProfile;
  http: HttpAnswer | undefined;
  mcpTools: McpDoubles;
  remoteAgents: RemoteAnswer | undefined;
  /** Takes the problem of a request without an answer. */
  onMissing(problem: string): void;
  recorded: WorldRecording | undefined;
}

/** Replaces tools by the results of a recording. */
export interface WorldRecording {
  chain(chain: VersionChain): VersionChain;
  executor(executor: TaskExecutor): TaskExecutor;
}

export class WorldTools {
  readonly #tools: ToolCodes;
  readonly #recorder: EffectRecorder;
  /** The conversations of deferred calls, by handle. */
  readonly #deferred = new Map<string, string>();

  constructor(
    private readonly world: ToolsWorld,
    private readonly code: ToolCodes & Pick<DeployedCode, "definition">,
    private readonly parts: ToolsParts,
  ) {
    this.#recorder = new EffectRecorder(world);
    this.#tools = recordedTools(code, this.#recorder);
  }

  /** All runs of the code and all requests, in order. */
  get effects(): readonly ToolRun[] {
    return this.#recorder.effects;
  }

  executorFor(life: MortalLife): TaskExecutor {
    const { clock, faults } = this.world;
    const { http, mcpTools, remoteAgents, onMissing, recorded, ...models } = this.parts;
    const real = localExecutor(
      this.#tools,
      clock,
      (context) => callerToolState(async () => this.#toolStateOf(context)),
      ({ operationId, attempt, context }, result) =>
        deliverResult(
          clock,
          async () => ({ handleTaskResult: (late) => asDone(() => this.#takeResult(context, late)) }),
          { operationId, attempt, ...result },
        ),
      (call, options) => inRuntime(() => this.world.during(this.#defer(call, options))),
      {
        models: () => ({
          ...models,
          adapters: adapterFor,
          embeddings: { embed: () => Promise.reject(new Error("A test app has no embeddings.")) },
        }),
        http: scriptedHttp(http, this.#recorder, onMissing),
        mcp: (...call) => callDouble(mcpTools, this.#recorder, ...call),
        remoteAgent: (...call) =>
          answerRemote({ code: this.code, answer: remoteAgents }, this.#recorder, onMissing, ...call),
        workspace: (call, signal, taint) => {
          const find = (_: string, id: string) => this.world.files.workspace(id);
          const { perform } = workspaceFor(find, call, signal, taint);
          return { perform: (...operation) => this.world.during(perform(...operation)) };
        },
        artifacts: (call, taint) => ({
          perform: (...operation) =>
            this.world.during(
              this.world.files
                .artifacts()
                .then((all) => artifactsFor(() => all, call, taint).perform(...operation)),
            ),
        }),
      },
    );
    return faultyExecutor(recorded?.executor(real) ?? real, {
      clock,
      isAlive: () => life.alive,
      next: () => faults.cross("tool"),
      kill: () => {
        if (!life.alive) return;
        this.world.note("The caller of the tool crashes.");
        life.alive = false;
      },
      held: (run) => this.#recorder.held(run),
      note: (call, text) => this.world.note(`${call.tool.id}: ${text}`),
    });
  }

  /** Returns the conversation of a deferred call. Throws `NOT_FOUND`. */
  deferredBy(handle: string): string {
    const found = this.#deferred.get(handle);
    if (found !== undefined) return found;
    const message = "No call of the test app has this handle. Pass `deferred.handle` of a tool.";
    throw notFound(message);
  }

  async #defer(
    { operationId, attempt, context }: ToolInvocation,
    options: DeferOptions,
  ): Promise<GivenHandle> {
    if (context.conversationId === undefined) return cannotDefer();
    const { results } = this.world.conversation(context.conversationId).awake().runtime;
    const given = await results.defer({ operationId, attempt, ...options });
    this.#deferred.set(given.handle, context.conversationId);
    return given;
  }

  #takeResult(context: CallContext, late: TaskResult): Promise<void> | void {
    if (context.runId !== undefined) return this.world.run(context.runId).awake().runtime.taskResult(late);
    return this.world.conversation(context.conversationId).awake().runtime.results.takeResult(late);
  }

  #toolStateOf(context: CallContext): ToolStateApi {
    const state = () =>
      context.runId !== undefined
        ? this.world.run(context.runId).awake().runtime.toolState
        : this.world.conversation(context.conversationId).awake().runtime.toolState;
    return {
      toolStateGet: (key) => inRuntime(() => asResult(() => state().get(key))),
      toolStatePut: (key, value) => inRuntime(() => asDone(() => state().put(key, value))),
      toolStateList: (prefix) => inRuntime(() => asResult(() => state().list(prefix))),
    };
  }
}
