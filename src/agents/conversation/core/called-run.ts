/** The data of the runs that tool calls and hooks start. Pure. */
import { formatReference, parseReference } from "../../../library/definitions/reference.ts";
import type { Taint } from "../../../model/taint.ts";
import type { PinnedHook } from "../../../protocol/definitions.ts";
import { operationId, turnId } from "../../../protocol/ids.ts";
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import type { CalledRun } from "../../../protocol/workflow-call.ts";
import { trailOf } from "../../../shared/call-trail.ts";
import { defined } from "../../../shared/defined.ts";
import type { DefinitionReference } from "../../../shared/identifiers.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { checkBudget } from "../../../shared/json-schema/violations.ts";
import { calledMemory } from "./called-memory.ts";
import { userOf, workflowOf, worksForRun } from "./called-workflow.ts";
import { correlationOf } from "./correlation.ts";
import type { HookRun } from "./hooks.ts";
import type { Operation } from "./operation.ts";
import { pathTo } from "./planning/call-guards.ts";
import { targetInput } from "./shown-call.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import { taintOfCall } from "./taints.ts";
import { operationTraceparent, turnTraceparent } from "./trace.ts";
import type { Turn } from "./turn.ts";

/** Returns the data of the run that a call waits for, if any. Throws if planning should have refused the call. */
export function calledRunOf(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
): CalledRun | undefined {
  const chain = chainOf(record, turn.agentId);
  const workflow = workflowOf(chain, operation);
  if (workflow === undefined || operation.target !== "workflow" || operation.status !== "dispatched")
    return undefined;
  const pinned = chain.tools.find(({ definition }) => definition.name === operation.name);
  const input =
    pinned === undefined ? operation.input : targetInput(pinned.definition, operation.input, checkBudget());
  return runOf(record, turn, operation, {
    ...{ workflow, input, taint: taintOfCall(turn, operation.reply) },
    traceparent: operationTraceparent(turn, operation.item),
  });
}

/** Returns the data of the run of a hook. Throws if planning should have refused the hook. */
export function hookRunOf(
  record: ConversationIdentity,
  turn: Turn,
  run: HookRun,
  { workflow, ...given }: { workflow: NonNullable<PinnedHook["workflow"]>; input: JsonObject; taint: Taint },
): CalledRun {
  // A hook has no span of its own.
  return runOf(record, turn, run, {
    ...{ workflow: versionOf(workflow), traceparent: turnTraceparent(turn) },
    ...given,
  });
}

function runOf(
  record: ConversationIdentity,
  turn: Turn,
  { item, attempt }: Pick<Operation, "item" | "attempt">,
  {
    workflow,
    input,
    taint,
    traceparent,
  }: { workflow: DefinitionReference; input: JsonObject; taint: Taint; traceparent: string },
): CalledRun {
  const startedBy = userOf(record, turn);
  if (startedBy === undefined) throw new Error("The run of a workflow needs a user as its owner.");
  const { agentId } = turn;
  return {
    workflow: formatReference(parseReference(workflow)),
    ...{ input, startedBy, projectId: record.projectId, path: pathTo(record, turn) },
    ...defined({ worksForRun: worksForRun(record, turn) }),
    ...trailOf({ correlationId: correlationOf(turn), traceparent }),
    origin: {
      ...{ conversationId: record.id, turnId: turnId(turn), agentId },
      ...{ operationId: operationId(turn, item), attempt },
      ...calledMemory(record, turn, taint),
      ...defined({ workspace: record.call?.workspace?.id }),
    },
  };
}

/** Returns the reference to a pinned workflow. Its version is 0 if the number was not known (REG-5). */
function versionOf({ library, id, version }: PinnedWorkflow): DefinitionReference {
  return { library, id, ...(version === 0 ? {} : { version }) };
}
