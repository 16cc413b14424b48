/**
 * Runs the consolidation task or workflow on behalf of an agent.
 *
 * JOINRUN-1  A task runs in the Executor under one operation id, the same in all attempts. It has no tool state and cannot defer its
 *            result.
 * JOINRUN-2  A workflow has one run for all attempts. Only the operators of the tenant can read the run.
 */
import { ToolError } from "../../library/tools/tool-error.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CoordinatorApi } from "../../protocol/coordinator-api.ts";
import type { PinnedHook } from "../../protocol/definitions.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import type { AttemptEnd, TaskExecutor } from "../../protocol/executor-api.ts";
import { calledRunId } from "../../protocol/ids.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { jurisdictionOf } from "../../shared/location.ts";
import type { Principal } from "../../shared/principal.ts";
import { CallBatch } from "../base/calls/call-batch.ts";
import type { ConsolidationCall } from "./consolidation-call.ts";

export interface ConsolidationPorts {
  executor: TaskExecutor;
  clock: Clock;
  coordinator(address: ActorAddress): Promise<CoordinatorApi>;
  agent: { id: string; tenant: string; projectIds: readonly string[] };
}

/** Longest wait of one query for the end of a run, in milliseconds. */
const ASK_MS = 20_000;
/** The name of the node in the context of a task. */
const NODE = "consolidation";

/** Returns the result, or `undefined` while a workflow runs. Throws `ToolError` if it fails, and the error of a failed start. */
export function runConsolidation(
  ports: ConsolidationPorts,
  hook: PinnedHook,
  call: ConsolidationCall,
): Promise<Json | undefined> {
  return hook.workflow === undefined ? runTask(ports, hook, call) : runWorkflow(ports, hook.workflow, call);
}

async function runTask(
  { executor, clock, agent }: ConsolidationPorts,
  { library, id, effect, timeoutMs, task }: PinnedHook,
  { operationId, attempt, input }: ConsolidationCall,
): Promise<Json> {
  let ended: AttemptEnd | undefined;
  const batch = new CallBatch({
    onEnds([first]) {
      ended = first.end;
      return true;
    },
    onProgress: () => undefined,
  });
  const { id: agentId, tenant, projectIds } = agent;
  const followed = batch.follow(
    {
      ...{ operationId, attempt, toolCallId: NODE, name: `${library}/${id}`, effect },
      invocation: () => ({
        ...{ tool: { library, id, version: 0 }, input, timeoutMs, ...defined({ task }) },
        context: {
          ...{ tenant, projectId: projectIds[0] ?? "default", node: NODE },
          runId: calledRunId(operationId, 1, jurisdictionOf(agentId)),
        },
      }),
    },
    new AbortController().signal,
  );
  await Promise.all([followed, batch.run(executor, clock, clock.now())]);
  if (ended === undefined || "deferred" in ended) throw new ToolError("The task returned no result.");
  const { success, result = null, error } = ended.result;
  if (!success) throw new ToolError(error?.message ?? "The task failed.", defined({ code: error?.code }));
  return result;
}

async function runWorkflow(
  { coordinator, agent: { id: agentId, tenant, projectIds } }: ConsolidationPorts,
  pinned: NonNullable<PinnedHook["workflow"]>,
  { operationId, attempt, input }: ConsolidationCall,
): Promise<Json | undefined> {
  const id = calledRunId(operationId, attempt, jurisdictionOf(agentId));
  // A run of the platform has no person as its principal, and so no role.
  const principal: Principal = { subject: `agent:${agentId}`, tenant, roles: [] };
  const run = await coordinator({ kind: "coordinator", tenant, id });
  const { library, id: workflow } = pinned;
  unwrap(
    await run.start(principal, {
      ...{ id, workflow: `${library}/${workflow}`, input, pinned, path: [agentId] },
      ...{ projectId: projectIds[0] ?? "default", idempotencyKey: operationId },
    }),
  );
  const view = unwrap(await run.finished(principal, ASK_MS));
  if (view.status === "running" || view.status === "waiting") return undefined;
  if (view.status === "completed") return view.output ?? {};
  throw new ToolError(`The run "${id}" is ${view.status}: ${view.error?.message ?? ""}`);
}
