/**
 * The runs of workflows that tool calls and hooks start, as their conversation knows them. Pure.
 *
 * FLOWRUN-1  A run belongs to one person: the author of the message that began the exchange of the turn. In a conversation that a call
 *            opened, this is the requester of the call, who is the person at the root of the calls (WHO-2). Without such a person the call
 *            is refused, and a hook fails.
 */
import { workflowTarget } from "../../../library/tools/workflow-tool.ts";
import type { PinnedHook, VersionChain } from "../../../protocol/definitions.ts";
import type { ToolErrorCode } from "../../../protocol/executor-api.ts";
import { calledRunId, operationId, type TurnKey } from "../../../protocol/ids.ts";
import type { DefinitionReference } from "../../../shared/identifiers.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { exchangeOf } from "./exchange.ts";
import { HOOK_REPLY, type HookRun } from "./hooks.ts";
import { awaitsApproval, type Operation } from "./operation.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import type { Turn } from "./turn.ts";

/** Returns the workflow that the calls of a pinned tool run; `undefined` for other tools. */
export function workflowOf(
  { tools }: Pick<VersionChain, "tools">,
  { tool, reply }: Pick<Operation, "tool" | "reply">,
): DefinitionReference | undefined {
  if (tool === null || reply === HOOK_REPLY) return undefined;
  const pinned = tools.find(
    ({ library, id, version }) => library === tool.library && id === tool.id && version === tool.version,
  );
  return workflowTarget(pinned?.definition.target)?.workflow;
}

/**
 * Returns the requester of a turn, who owns its runs (FLOWRUN-1).
 *
 * The user may read such a run, stop it and answer its gates, and may read the conversations of its agents. They have the same rights in a
 * run that they start directly, of any workflow of the tenant, so the tool adds no right. Other people of the conversation see only the
 * result of the call. Gates of the run ask the requester. The subject comes from the record of the turn, with its authenticated message,
 * never from text of a model or a client. The id of the run, which derives from the operation, grants no access: the run's actor checks the
 * subject of each request.
 */
export function userOf(
  { call }: Pick<ConversationIdentity, "call">,
  turn: Pick<Turn, "n" | "caller" | "exchange">,
): string | undefined {
  const { by } = exchangeOf(turn);
  return by.type === "user" ? by.userId : (call?.requester ?? call?.readers[0]);
}

/** Returns `true` if a run waits for a turn, at any distance. */
export function worksForRun(
  { call }: Pick<ConversationIdentity, "call">,
  { caller }: Pick<Turn, "caller">,
): true | undefined {
  const isForRun = caller.type === "workflow" || (call !== undefined && "runId" in call.caller);
  return isForRun ? true : call?.worksForRun;
}

/** The errors of calls that never started a run or an agent. */
const NO_RUN: ReadonlySet<ToolErrorCode> = new Set([
  "INVALID_INPUT",
  "PERMISSION_DENIED",
  "APPROVAL_DENIED",
  "BUDGET_EXCEEDED",
  "NOT_FOUND",
]);

/** Reports whether a call with this error was refused before it started a run or an agent. */
export function isRefused(code: ToolErrorCode | undefined): boolean {
  return code !== undefined && NO_RUN.has(code);
}

/** Returns the run id of a hook's attempt as a member; `{}` for hooks that are tasks. */
export function hookRunMember(
  record: Pick<ConversationIdentity, "id">,
  turn: TurnKey,
  hook: Pick<PinnedHook, "workflow"> | undefined,
  { item, attempt }: Pick<HookRun, "item" | "attempt">,
): { runId?: string } {
  if (hook?.workflow === undefined) return {};
  return { runId: calledRunId(operationId(turn, item), attempt, jurisdictionOf(record.id)) };
}

/** Returns the run id of an operation as a member; `{}` for other operations and before approval. */
export function runMember(
  record: Pick<ConversationIdentity, "id" | "agents">,
  turn: Pick<Turn, "n" | "stem" | "agentId">,
  operation: Operation,
): { runId?: string } {
  const { item, attempt, result } = operation;
  if (workflowOf(chainOf(record, turn.agentId), operation) === undefined || awaitsApproval(operation))
    return {};
  if (isRefused(result?.error?.code)) return {};
  return { runId: calledRunId(operationId(turn, item), attempt, jurisdictionOf(record.id)) };
}
