/** Runs actions, by kind. */
import type { ToolContext } from "../../../library/define/define.ts";
import type { ToolCodes } from "../../../library/registry/deployed-code.ts";
import type { ResolveHost } from "../../../library/tasks/resolver.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import { DEFAULT_TOOL_TIMEOUT_MS } from "../../../library/tools/tool-schema.ts";
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import type { HttpRequestAction, PinnedAction } from "../../../protocol/task-definition.ts";
import { COMMAND_MS } from "../../../protocol/workspace.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { mapped } from "../../../shared/expressions/mapping.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import { runEmbed } from "../actions/embed.ts";
import { type CredentialsFor, requestHttp, type SendHttp } from "../actions/http-request.ts";
import { runLlm } from "../actions/llm.ts";
import { runMemory } from "../actions/memory.ts";
import { runMock } from "../actions/mock.ts";
import type { ActionModels, ModelRun } from "../actions/ports.ts";
import { runVector, type VectorIndexes } from "../actions/vector.ts";
import { toolErrorCode } from "../tool-error-code.ts";
import type { TaskAreas } from "./areas.ts";
import type { TaskRecord } from "./task-record.ts";

/** Timeout of an agent's memory, in milliseconds. */
const MEMORY_TIMEOUT_MS = 30_000;
const ARTIFACTS_TIMEOUT_MS = 60_000;
/** Timeout of a workspace, in milliseconds: the longest command, and the operations before it. */
const WORKSPACE_TIMEOUT_MS = COMMAND_MS.max + 30_000;

export interface ActionPorts {
  tools: Pick<ToolCodes, "actionCode">;
  clock: Pick<Clock, "timer" | "now">;
  /** Reports whether authored tasks may send requests to a host, given as an action names it. */
  mayReach(host: string): boolean;
  /** Sends the requests of one run of an action. Default: the global `fetch`. */
  http?(action: HttpRequestAction, context: ToolContext): SendHttp;
  /** Resolves public hosts before requests. Absent: they are not resolved. */
  resolve?: ResolveHost;
  /** Returns the headers with secrets of a project for an address. Absent: projects have no secrets. */
  credentials?(
    project: Pick<CallContext, "tenant" | "projectId">,
    ...of: Parameters<CredentialsFor>
  ): ReturnType<CredentialsFor>;
  /** Makes what actions need for models. Most tasks call none. */
  models?(): ActionModels;
  vectors: VectorIndexes;
}

export interface ActionRun {
  input: Json;
  areas: TaskAreas;
  context: ToolContext;
  ports: ActionPorts;
  /** The step budget of all expressions and texts of the task. */
  meter: Meter;
  record: TaskRecord;
  /** An author of the tenant wrote the task. */
  isAuthored: boolean;
}

/** Returns the result of an action. Rethrows its errors. */
export async function runAction(action: PinnedAction, run: ActionRun): Promise<unknown> {
  const { input, areas, context, ports, meter, record } = run;
  switch (action.kind) {
    case "code": {
      const code = ports.tools.actionCode(action.library, action.id);
      if (code === undefined)
        throw new ToolError(`The action "${action.library}/${action.id}" is not deployed.`, {
          code: "NOT_FOUND",
        });
      // Copy the input, so an attempt cannot change the input of its retry.
      return inTime(action.timeoutMs, run, (signal) => code(structuredClone(input), { ...context, signal }));
    }
    case "update_context":
      return mapped(action.values, areas.variables, meter);
    case "http.request": {
      const hosts = run.isAuthored ? action.hosts.filter((host) => ports.mayReach(host)) : action.hosts;
      const send = ports.http?.(action, context);
      const credentials = ports.credentials?.bind(undefined, context.context);
      return inTime(action.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS, run, (signal) =>
        requestHttp({ ...action, hosts }, input, {
          signal,
          idempotencyKey: context.operationId,
          ...defined({ send, resolve: ports.resolve, credentials }),
        }),
      );
    }
    case "emit_event":
      return record.addEvent(action.name, input);
    case "metric.record":
      return record.addMetric(action, input);
    case "llm":
      return runLlm(action, input, modelRun(run));
    case "llm.embed":
      return runEmbed(action, input, modelRun(run));
    case "vector": {
      const { tenant } = context.context;
      const { vectors: indexes, clock } = ports;
      return runVector(action, input, { indexes, tenant, clock, signal: context.signal });
    }
    case "memory.write":
    case "memory.read":
    case "memory.search":
    case "memory.list":
    case "memory.update":
    case "memory.delete":
    case "memory.archive":
      return inTime(MEMORY_TIMEOUT_MS, run, () => runMemory(action, input, context));
    case "repo.tree":
    case "repo.read":
    case "repo.write":
    case "repo.edit":
    case "repo.search":
    case "repo.diff":
    case "repo.commit":
    case "repo.merge":
    case "shell.exec":
      return inTime(WORKSPACE_TIMEOUT_MS, run, () =>
        runOperation(input, (given) => context.workspace.perform(action.kind, given, context.operationId)),
      );
    case "artifact.read":
    case "artifact.list":
    case "artifact.search":
    case "artifact.write":
    case "artifact.delete":
      return inTime(ARTIFACTS_TIMEOUT_MS, run, () =>
        runOperation(input, (given) => context.artifacts.perform(action.kind, given, context.operationId)),
      );
    case "mock.return":
      return runMock(action, { clock: ports.clock, signal: context.signal, meter });
    case "human.input":
    case "human.approve":
    case "human.review":
      throw new ToolError("It asks a person. Its task can run only as a node of a workflow.");
    default:
      return unknownKind(action);
  }
}

/** Fails for a kind that a newer deployment has pinned. */
function unknownKind(action: never): never {
  const { kind } = action as { kind: unknown };
  throw new ToolError(`This deployment does not support actions of the kind "${String(kind)}".`);
}

function modelRun({ context, ports, meter, record }: ActionRun): ModelRun {
  const { models, clock } = ports;
  if (models === undefined) throw new ToolError("This Executor cannot call models.");
  return {
    models: models(),
    context: context.context,
    signal: context.signal,
    clock,
    meter,
    requests: record,
  };
}

function inTime(
  milliseconds: number,
  { context, ports }: ActionRun,
  work: (signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> {
  const message = `Its action did not answer within ${milliseconds} ms.`;
  return withDeadline(ports.clock, milliseconds, work, {
    outer: context.signal,
    reason: () => new ToolError(message, { code: "TIMEOUT", retriable: true }),
  });
}

/** Throws `ToolError`. */
async function runOperation(
  input: Json,
  perform: (input: JsonObject) => Promise<JsonObject>,
): Promise<unknown> {
  if (!isJsonObject(input)) throw new ToolError("Its input must be an object.", { code: "INVALID_INPUT" });
  try {
    return await perform(input);
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    const { message, retriable, options } = error;
    throw new ToolError(message, { code: toolErrorCode(error), retriable, rule: options.rule, cause: error });
  }
}
